"""The zeta functions of Riemann and Hurwitz."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.extension import ArgumentError, Registry, Slopes, Spec, primitive
from tenferro_runtime.special._scipy import family, register_host, register_jax
from tenferro_tensor import Array

__all__ = ["zeta"]


@primitive(elementwise=True, domain="floating", family=family("riemann_zeta"), extension="special")
def riemann_zeta_(s: Spec, *, order: int) -> Spec:
    """A derivative of Riemann's zeta function."""
    return s


_RIEMANN: Final = riemann_zeta_.op(order=0)


@primitive(elementwise=True, domain="floating", family=family("hurwitz_zeta"), extension="special")
def hurwitz_zeta_(s: Spec, q: Spec, *, order: int) -> Spec:
    """A derivative of Hurwitz's zeta function by its exponent."""
    if order < 0:
        raise ArgumentError(f"a zeta function has derivatives of order at least 0, got {order}", order=order)
    return s


_HURWITZ: Final = hurwitz_zeta_.op(order=0)


def zeta(s: Any, q: Any = None, /) -> Array:
    """Riemann zeta function, or the Hurwitz zeta function: the sum of ``(q + k) ** -s`` over all k from 0.

    The Riemann function is continued to all real numbers, with a pole at 1. Definition: DLMF 25.2, 25.11.

    Args:
        s: exponent, a real array; above 1 where `q` is given.
        q: first term of the sum, a real array; ``None`` for the Riemann zeta function.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.zeta(tr.asarray([2.0, -1.0]))
    Tensor([ 1.64493407, -0.08333333])
    >>> tr.special.zeta(tr.asarray(2.0), tr.asarray([1.0, 2.0]))
    Tensor([1.64493407, 0.64493407])
    """
    if q is None:
        return _RIEMANN(s)  # type: ignore[no-any-return]
    return _HURWITZ(s, q)  # type: ignore[no-any-return]


def _by_start(s: Any, q: Any, order: int) -> Any:
    slope = -s * hurwitz_zeta_(s + 1.0, q, order=order)
    return slope - order * hurwitz_zeta_(s + 1.0, q, order=order - 1) if order else slope


def _riemann(s: Any, order: int) -> Any:
    from tenferro_runtime.special._zeta_derivatives import riemann

    return riemann(s, order)


def _hurwitz(s: Any, q: Any, order: int) -> Any:
    from tenferro_runtime.special._zeta_derivatives import hurwitz

    return hurwitz(s, q, order)


def register(registry: Registry) -> None:
    """Register the kernels and rules of this module."""
    by_exponent = Slopes(singular=True, s=lambda s, order: riemann_zeta_(s, order=order + 1))
    register_host(registry, riemann_zeta_, by_exponent, _riemann, value="zeta")
    both = Slopes(singular=True, s=lambda s, q, order: hurwitz_zeta_(s, q, order=order + 1), q=_by_start)
    register_host(registry, hurwitz_zeta_, both, _hurwitz, value="zeta")
    register_jax(registry, hurwitz_zeta_, "zeta", by=("order",))
