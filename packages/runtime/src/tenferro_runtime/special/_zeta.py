"""The zeta functions of Riemann and Hurwitz."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.special._declared import from_host
from tenferro_runtime.special._zeta_derivatives import hurwitz, riemann
from tenferro_tensor import Array

__all__ = ["zeta"]


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
        return riemann_zeta_(s)  # type: ignore[no-any-return]
    return hurwitz_zeta_(s, q)  # type: ignore[no-any-return]


def _by_start(s: Any, q: Any, order: int) -> Any:
    slope = -s * hurwitz_zeta_(s + 1.0, q, order=order)
    return slope - order * hurwitz_zeta_(s + 1.0, q, order=order - 1) if order else slope


riemann_zeta_ = from_host(
    "riemann_zeta", "s", "A derivative of Riemann's zeta function.", riemann, {"s": "order"}, value="zeta"
)
hurwitz_zeta_ = from_host(
    "hurwitz_zeta",
    "s q",
    "A derivative of Hurwitz's zeta function by its exponent.",
    hurwitz,
    {"s": "order"},
    refusal="a zeta function has derivatives of order at least 0",
    value="zeta",
    jax="zeta",
    q=_by_start,
)
