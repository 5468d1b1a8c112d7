"""Polar decomposition ``A = U P``.

For m >= n, with ``K = U* dA`` and the skew solution of ``P Om + Om P = K - K*``::

    dU = U Om + (dA - U K) P^-1        P = (U* A + A* U) / 2

No difference of singular values occurs, so equal ones are harmless; zero ones leave U undetermined.
"""

from typing import Any, NamedTuple

import numpy as np

from tenferro_linalg._algebra import adjoint, mm, sym, total
from tenferro_linalg._bases import hermitian
from tenferro_linalg._errors import RankError
from tenferro_linalg._operands import flag, matrices, require_inexact, require_square
from tenferro_linalg._solve import solve_
from tenferro_runtime.extension import Array, General, Registry, Spec, primitive
from tenferro_tensor_core import ask
from tenferro_tensor_core.tracebacks import boundary


class PolarResult(NamedTuple):
    """Polar decomposition.

    Attributes:
        u: the factor with orthonormal columns (or rows).
        p: the positive semidefinite factor.
    """

    u: Array
    p: Array


@boundary
def polar(x: Any, /, side: str = "right") -> PolarResult:
    """Polar decomposition ``A = U @ P`` with orthonormal columns (for m < n, rows) in U and positive semidefinite P.

    Args:
        x: matrices (..., m, n).
        side: ``"right"`` for ``A = U @ P``, ``"left"`` for ``A = P @ U``.

    Returns:
        U (..., m, n), and P (..., n, n) or, on the left, (..., m, m).

    Raises:
        ArgumentError: `side` is neither of the two.
        NumericalError: an entry is not finite, or LAPACK does not converge.
        RankError: (derivative) a matrix does not have full rank.

    >>> polar([[0.0, -2.0], [3.0, 0.0]]).p
    Tensor([[3., 0.],
            [0., 2.]])
    """
    flag("polar", "side", side, ("right", "left"))
    x = matrices("polar", x)
    tall = ask(x.spec.shape[-2], ">=", x.spec.shape[-1])
    u = unitary_factor_(x) if tall else adjoint(unitary_factor_(adjoint(x)))
    return PolarResult(u, sym(mm(adjoint(u), x) if side == "right" else mm(x, adjoint(u))))


@primitive(family="tenferro-linalg.unitary_factor.v1", extension="linalg")
def unitary_factor_(x: Spec) -> Spec:
    """The polar factor with orthonormal columns, of matrices with at least as many rows as columns."""
    require_inexact("polar", x)
    return x


@primitive(family="tenferro-linalg.anticommutator.v1", extension="linalg")
def anticommutator_(p: Spec, c: Spec) -> Spec:
    """Solution X of ``P X + X P = C`` for the Hermitian part P of `p`, positive definite."""
    require_inexact("polar", p, c)
    require_square("polar", p)
    return c


def _unitary_kernel(la: Any, ins: Any, outs: Any) -> Any:
    def run(x: Any) -> Any:
        u, _, vh = la.svd(la.finite("polar", x), False)
        return u @ vh

    return run


def _anticommutator_kernel(la: Any, ins: Any, outs: Any) -> Any:
    eps = float(np.finfo(outs[0].dtype).eps)

    def run(p: Any, c: Any) -> Any:
        w, v = la.eigh(hermitian(p))
        if w.size:
            zero = w[..., 0] <= 8 * w.shape[-1] * eps * w[..., -1]
            if bool(zero.any()):
                index = tuple(int(i) for i in np.argwhere(la.local(la.xp.atleast_1d(zero)))[0]) if w.ndim > 1 else ()
                raise RankError(
                    f"polar: {f'matrix {index} of the stack' if index else 'the matrix'} does not have full rank "
                    f"(its smallest singular value is {abs(float(la.local(w)[(*index, 0)])):.1e}), which leaves U "
                    "undetermined, and it has no derivative; regularise the matrix",
                    batch=index,
                )
        vh = v.conj().swapaxes(-1, -2)
        return v @ ((vh @ c @ v) / (w[..., :, None] + w[..., None, :])) @ vh

    return run


def _unitary_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (a,), (da,), (u,) = primals, tangents, outs
    uh = adjoint(u)
    p, k = sym(mm(uh, a)), mm(uh, da)
    du = mm(u, anticommutator_(p, k - adjoint(k)))
    if a.spec.shape[-2] == a.spec.shape[-1]:
        return (du,)
    return (du + adjoint(solve_(p, adjoint(da - mm(u, k)))),)


def _anticommutator_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (p, _), (dp, dc), (x,) = primals, tangents, outs
    if dp is not None:
        h = sym(dp)
        dc = total(dc, -(mm(h, x) + mm(x, h)))
    return (None if dc is None else anticommutator_(p, dc),)


def _anticommutator_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, Any]:
    x, g = outs[0], anticommutator_(primals[0], cotangents[0])
    xh = adjoint(x)
    return -sym(mm(g, xh) + mm(xh, g)), g


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, unitary_factor_, _unitary_kernel)
    kernels(registry, anticommutator_, _anticommutator_kernel)
    registry.rule(unitary_factor_, General(jvp=_unitary_jvp))
    registry.rule(anticommutator_, General(jvp=_anticommutator_jvp, vjp=_anticommutator_vjp))
