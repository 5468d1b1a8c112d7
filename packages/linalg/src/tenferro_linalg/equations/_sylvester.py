"""The Sylvester equation ``A X + X B = C``, and the Lyapunov equation.

Solved from the Schur factors of A and B (Bartels and Stewart 1972). Derivatives solve equations with the same factors::

    A dX + dX B = dC - dA X - X dB        A* S + S B* = X',  C' = S,  A' = -S X*,  B' = -X* S

(primes are cotangents). In the Lyapunov equation B is the adjoint of A, with the same factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, mm, total
from tenferro_linalg._operands import common, matrices, require_inexact, show, stacked
from tenferro_linalg.equations._schur_factors import common_eigenvalues, indices, schur_factors_, without_overflow
from tenferro_runtime.extension import General, Registry, ShapeError, Spec, primitive
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor_core import ask
from tenferro_tensor_core.tracebacks import boundary


@boundary
def solve_sylvester(a: Any, b: Any, q: Any, /) -> Array:
    """Solve the Sylvester equation ``A @ X + X @ B = Q`` (Bartels and Stewart 1972).

    Args:
        a: matrices (..., m, m).
        b: matrices (..., n, n).
        q: matrices (..., m, n); batch axes broadcast.

    Returns:
        X (..., m, n) of the promoted dtype.

    Raises:
        NumericalError: an entry is not finite, or an eigenvalue of A is minus one of B.
        ShapeError: the extents do not match.

    >>> solve_sylvester([[1.0, 0.0], [0.0, 2.0]], [[3.0]], [[4.0], [10.0]])
    Tensor([[1.],
            [2.]])
    """
    what = "solve_sylvester"
    a, b, q = fitted(what, matrices(what, a, square=True), matrices(what, b, square=True), matrices(what, q))
    return sylvester(what, a, b, q)


@boundary
def solve_continuous_lyapunov(a: Any, q: Any, /) -> Array:
    """Solve the continuous Lyapunov equation ``A @ X + X @ A* = Q`` (Bartels and Stewart 1972).

    Args:
        a: matrices (..., n, n).
        q: matrices (..., n, n); batch axes broadcast.

    Returns:
        X (..., n, n) of the promoted dtype, Hermitian if Q is.

    Raises:
        NumericalError: an entry is not finite, or an eigenvalue of A and one of its adjoint add up to zero.
        ShapeError: the extents do not match.

    >>> solve_continuous_lyapunov([[1.0, 0.0], [0.0, 2.0]], [[2.0, 3.0], [3.0, 8.0]])
    Tensor([[1., 1.],
            [1., 2.]])
    """
    what = "solve_continuous_lyapunov"
    a, q = matrices(what, a, square=True), matrices(what, q, square=True)
    a, _, q = fitted(what, a, a, q)
    return lyapunov(what, a, q)


@boundary
def solve_lyapunov(a: Any, q: Any, /) -> Array:
    """Solve the continuous Lyapunov equation; `solve_continuous_lyapunov` under its short name.

    Args:
        a: matrices (..., n, n).
        q: matrices (..., n, n); batch axes broadcast.

    Returns:
        X (..., n, n) of the promoted dtype, Hermitian if Q is.

    Raises:
        NumericalError: an entry is not finite, or an eigenvalue of A and one of its adjoint add up to zero.
        ShapeError: the extents do not match.

    >>> solve_lyapunov([[2.0]], [[8.0]])
    Tensor([[2.]])
    """
    return solve_continuous_lyapunov(a, q)


def fitted(what: str, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """Coefficients and a right-hand side, converted to a common dtype and batch axes, after checking their extents."""
    a, b, c = common(a, b, c)
    if not (ask(c.spec.shape[-2], "==", a.spec.shape[-1]) and ask(c.spec.shape[-1], "==", b.spec.shape[-1])):
        raise ShapeError(
            f"{what}: matrices of shapes {show(a.spec.shape)} and {show(b.spec.shape)} need a right side of their "
            f"extents, got shape {show(c.spec.shape)}",
            shapes=(a.spec.shape, b.spec.shape, c.spec.shape),
        )
    batch = broadcast_shapes(a.spec.shape[:-2], b.spec.shape[:-2], c.spec.shape[:-2])
    return stacked(a, batch), stacked(b, batch), stacked(c, batch)


def sylvester(what: str, a: Any, b: Any, c: Any) -> Any:
    """Solution of ``a X + X b = c``."""
    a_factors, b_factors = (schur_factors_(m, what=what, triangular=False) for m in (a, b))
    return sylvester_(a, *a_factors, b, *b_factors, c, left=False, right=False, what=what)


def lyapunov(what: str, a: Any, c: Any, *, turned: bool = False) -> Any:
    """Solution of ``a X + X a* = c``; if `turned`, of ``a* X + X a = c``."""
    factors = schur_factors_(a, what=what, triangular=False)
    return sylvester_(a, *factors, a, *factors, c, left=turned, right=not turned, what=what)


@primitive(family="tenferro-linalg.sylvester.v1", extension="linalg")
def sylvester_(
    a: Spec, qa: Spec, ta: Spec, b: Spec, qb: Spec, tb: Spec, c: Spec, *, left: bool, right: bool, what: str
) -> Spec:
    """Solution of ``A X + X B = c`` from the factors of a and b; A is ``a*`` if `left`, B is ``b*`` if `right`."""
    require_inexact(what, a, b, c)
    return c


def _kernel(la: Any, ins: Any, outs: Any, *, left: bool, right: bool, what: str) -> Any:
    trsyl = la.lapack("trsyl", outs[0].dtype)
    letters = ["C" if flag else "N" for flag in (left, right)]

    def run(a: Any, qa: Any, ta: Any, b: Any, qb: Any, tb: Any, c: Any) -> Any:
        la.finite(what, c)
        with np.errstate(all="ignore"):
            return without_overflow(what, solution(qa, ta, qb, tb, c))

    def solution(qa: Any, ta: Any, qb: Any, tb: Any, c: Any) -> Any:
        inner = qa.conj().swapaxes(-1, -2) @ c @ qb
        for index in indices(c) if c.size else ():
            y, scale, info = trsyl(ta[index], tb[index], inner[index], *letters)
            if info:
                relation = "of A and B add up to zero" if not (left or right) else "of A and its adjoint add up to zero"
                raise common_eigenvalues(what, index, relation)
            inner[index] = y / scale
        return qa @ inner @ qb.conj().swapaxes(-1, -2)

    return run


def _op(x: Any, turned: bool) -> Any:
    return adjoint(x) if turned else x


def _jvp(primals: Any, tangents: Any, outs: Any, *, left: bool, right: bool, what: str) -> tuple[Any]:
    (x,), (da, _, _, db, _, _, dc) = outs, tangents
    change = total(
        dc,
        None if da is None else -mm(_op(da, left), x),
        None if db is None else -mm(x, _op(db, right)),
    )
    if change is None:
        return (None,)
    return (sylvester_(*primals[:-1], change, left=left, right=right, what=what),)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, left: bool, right: bool, what: str) -> tuple[Any, ...]:
    (x,), (g,) = outs, cotangents
    s = sylvester_(*primals[:-1], g, left=not left, right=not right, what=what)
    by_a = -(mm(x, adjoint(s)) if left else mm(s, adjoint(x)))
    by_b = -(mm(adjoint(s), x) if right else mm(adjoint(x), s))
    return by_a, None, None, by_b, None, None, s


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, sylvester_, _kernel, devices=False)
    registry.rule(sylvester_, General(jvp=_jvp, vjp=_vjp))
