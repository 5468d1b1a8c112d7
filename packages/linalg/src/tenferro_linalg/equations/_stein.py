"""The Stein equation ``X - A X A* = C``, i.e. the discrete Lyapunov equation.

In a basis where A is triangular, the columns are computed one after the other (Kitagawa 1977). Derivatives solve
equations with the same factors::

    dX - A dX A* = dC + dA X A* + A X dA*        S - A* S A = X',  C' = S,  A' = S A X* + S* A X

(primes are cotangents).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg._algebra import adjoint, mm, total
from tenferro_linalg._operands import matrices, require_inexact
from tenferro_linalg.equations._schur_factors import common_eigenvalues, indices, schur_factors_, without_overflow
from tenferro_linalg.equations._sylvester import fitted
from tenferro_runtime.extension import General, Registry, Spec, primitive
from tenferro_tensor import Array
from tenferro_tensor_core.tracebacks import boundary


@boundary
def solve_discrete_lyapunov(a: Any, q: Any, /) -> Array:
    """Solve the discrete Lyapunov equation ``A @ X @ A* - X + Q = 0`` (Kitagawa 1977).

    Args:
        a: matrices (..., n, n).
        q: matrices (..., n, n); batch axes broadcast.

    Returns:
        X (..., n, n) of the promoted dtype, Hermitian if Q is.

    Raises:
        NumericalError: an entry is not finite, or an eigenvalue of A times one of its adjoint is 1.
        ShapeError: the extents do not match.

    >>> solve_discrete_lyapunov([[0.5, 0.0], [0.0, 0.0]], [[3.0, 1.0], [1.0, 2.0]])
    Tensor([[4., 1.],
            [1., 2.]])
    """
    what = "solve_discrete_lyapunov"
    a, q = matrices(what, a, square=True), matrices(what, q, square=True)
    a, _, q = fitted(what, a, a, q)
    return stein(what, a, q)


def stein(what: str, a: Any, c: Any, *, turned: bool = False) -> Any:
    """Solution of ``X - a X a* = c``; if `turned`, of ``X - a* X a = c``."""
    return stein_(a, *schur_factors_(a, what=what, triangular=True), c, turned=turned, what=what)


@primitive(family="tenferro-linalg.stein.v1", extension="linalg")
def stein_(a: Spec, q: Spec, t: Spec, c: Spec, *, turned: bool, what: str) -> Spec:
    """Solution of ``X - A X A* = c`` from the factors of a, where A is ``a*`` if `turned`."""
    require_inexact(what, a, c)
    return c


def _kernel(la: Any, ins: Any, outs: Any, *, turned: bool, what: str) -> Any:
    (out,) = outs
    real = not out.cplx

    def run(a: Any, q: Any, t: Any, c: Any) -> Any:
        la.finite(what, c)
        with np.errstate(all="ignore"):
            return without_overflow(what, solution(q, t, c))

    def solution(q: Any, t: Any, c: Any) -> Any:
        qh = q.conj().swapaxes(-1, -2)
        inner = qh @ c @ q
        trtrs = la.lapack("trtrs", inner.dtype)
        for index in indices(c) if c.size else ():
            y = _columns(trtrs, t[index], inner[index], turned)
            if y is None:
                raise common_eigenvalues(what, index, "of A and its adjoint have the product 1")
            inner[index] = y
        found = q @ inner @ qh
        return found.real.copy() if real else found

    return run


def _columns(trtrs: Any, t: Any, f: Any, turned: bool) -> Any:
    """Solution of ``Y - T Y T* = F``, or of ``Y - T* Y T = F``; None if it is not unique."""
    n = len(t)
    y, identity, op = np.empty_like(f, order="F"), np.eye(n, dtype=t.dtype), t.conj().T if turned else t
    smallest = np.finfo(t.dtype).eps * n
    for k in range(n) if turned else reversed(range(n)):
        right = f[:, k]
        if turned and k:
            right = right + op @ (y[:, :k] @ t[:k, k])
        elif not turned and k < n - 1:
            right = right + op @ (y[:, k + 1 :] @ t[k, k + 1 :].conj())
        matrix = identity - t[k, k].conj() * t
        if np.abs(np.diagonal(matrix)).min() <= smallest * max(1.0, np.abs(matrix).max()):
            return None
        y[:, k] = trtrs(matrix, right, trans=2 if turned else 0)[0]
    return y


def _jvp(primals: Any, tangents: Any, outs: Any, *, turned: bool, what: str) -> tuple[Any]:
    (a, q, t, _), (x,), (da, _, _, dc) = primals, outs, tangents
    change = dc
    if da is not None:
        op, d = (adjoint(a), adjoint(da)) if turned else (a, da)
        change = total(dc, mm(d, x, adjoint(op)), mm(op, x, adjoint(d)))
    return (None if change is None else stein_(a, q, t, change, turned=turned, what=what),)


def _vjp(primals: Any, outs: Any, cotangents: Any, *, turned: bool, what: str) -> tuple[Any, ...]:
    (a, q, t, _), (x,), (g,) = primals, outs, cotangents
    s = stein_(a, q, t, g, turned=not turned, what=what)
    op = adjoint(a) if turned else a
    by = mm(s, op, adjoint(x)) + mm(adjoint(s), op, x)
    return adjoint(by) if turned else by, None, None, s


def register(registry: Registry) -> None:
    """Kernel and rule of the primitive of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, stein_, _kernel, devices=False)
    registry.rule(stein_, General(jvp=_jvp, vjp=_vjp))
