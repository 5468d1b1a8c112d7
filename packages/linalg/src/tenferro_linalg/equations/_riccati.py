"""Algebraic Riccati equations, continuous and discrete; their derivatives solve linear equations.

For ``A* X + X A - X B R^-1 B* X + Q = 0``, with ``K = R^-1 B* X`` and the closed loop ``C = A - B K``::

    C* dX + dX C = -(dA* X + X dA - X dB K - (X dB K)* + K* dR K + dQ)

and for ``A* X A - X - A* X B (R + B* X B)^-1 B* X A + Q = 0``, with ``K = (R + B* X B)^-1 B* X A``::

    dX - C* dX C = (dA - dB K)* X C + C* X (dA - dB K) + K* dR K + dQ
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tenferro_linalg._algebra import adjoint, mm, sym, total
from tenferro_linalg._operands import common, matrices, require_inexact, show, stacked
from tenferro_linalg._solve import solve, solve_
from tenferro_linalg.equations._schur_factors import without_overflow
from tenferro_linalg.equations._stein import stein
from tenferro_linalg.equations._sylvester import lyapunov
from tenferro_runtime.extension import General, NumericalError, Registry, ShapeError, Spec, library, primitive
from tenferro_tensor import Array, broadcast_shapes
from tenferro_tensor_core import ask
from tenferro_tensor_core.tracebacks import boundary


@boundary
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, /, e: Any = None, s: Any = None) -> Array:
    """Solve the continuous algebraic Riccati equation for its stabilising solution X.

    ``A* X E + E* X A - (E* X B + S) R^-1 (B* X E + S*) + Q = 0``.

    Args:
        a: matrices (..., n, n).
        b: matrices (..., n, m).
        q: Hermitian matrices (..., n, n); of others, the Hermitian part.
        r: Hermitian invertible matrices (..., m, m); of others, the Hermitian part.
        e: invertible matrices (..., n, n), by default the identity.
        s: matrices (..., n, m), by default zero; all batch axes broadcast.

    Returns:
        X (..., n, n), Hermitian, of the promoted dtype.

    Raises:
        NumericalError: an entry is not finite, or there is no stabilising solution.
        ShapeError: the extents do not match.

    >>> solve_continuous_are([[0.0]], [[1.0]], [[4.0]], [[1.0]]).round()
    Tensor([[2.]])
    """
    return continuous_are_(*_coefficients("solve_continuous_are", a, b, q, r, e, s))


@boundary
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, /, e: Any = None, s: Any = None) -> Array:
    """Solve the discrete algebraic Riccati equation for its stabilising solution X.

    ``A* X A - E* X E - (A* X B + S) (R + B* X B)^-1 (B* X A + S*) + Q = 0``.

    Args:
        a: matrices (..., n, n).
        b: matrices (..., n, m).
        q: Hermitian matrices (..., n, n); of others, the Hermitian part.
        r: Hermitian invertible matrices (..., m, m); of others, the Hermitian part.
        e: invertible matrices (..., n, n), by default the identity.
        s: matrices (..., n, m), by default zero; all batch axes broadcast.

    Returns:
        X (..., n, n), Hermitian, of the promoted dtype.

    Raises:
        NumericalError: an entry is not finite, or there is no stabilising solution.
        ShapeError: the extents do not match.

    >>> solve_discrete_are([[0.0]], [[1.0]], [[4.0]], [[1.0]]).round()
    Tensor([[4.]])
    """
    return discrete_are_(*_coefficients("solve_discrete_are", a, b, q, r, e, s))


def _coefficients(what: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> tuple[Any, Any, Any, Any]:
    """A, B, Q and R of the equivalent equation without E and S."""
    given = [matrices(what, x, square=k != 1) for k, x in enumerate((a, b, q, r))]
    given += [matrices(what, x) for x in (e, s) if x is not None]
    given = list(common(*given))
    batch = broadcast_shapes(*[x.spec.shape[:-2] for x in given])
    a, b, q, r, *more = [stacked(x, batch) for x in given]
    n, m = b.spec.shape[-2:]
    wanted = (
        [(n, n), (n, m), (n, n), (m, m)] + ([(n, n)] if e is not None else []) + ([(n, m)] if s is not None else [])
    )
    for x, (rows, columns) in zip(given, wanted, strict=True):
        if not (ask(x.spec.shape[-2], "==", rows) and ask(x.spec.shape[-1], "==", columns)):
            shapes = ", ".join(show(x.spec.shape) for x in given)
            raise ShapeError(
                f"{what} takes matrices (n, n), (n, m), (n, n) and (m, m), with E (n, n) and S (n, m); got {shapes}",
                shapes=tuple(x.spec.shape for x in given),
            )
    q, r = sym(q), sym(r)
    cross = more[-1] if s is not None else None
    if e is not None:
        eh = adjoint(more[0])
        a, q = adjoint(solve(eh, adjoint(a))), solve(eh, adjoint(solve(eh, q)))
        cross = None if cross is None else solve(eh, cross)
    if cross is not None:
        gain = solve(r, adjoint(cross))
        a, q = a - mm(b, gain), q - mm(cross, gain)
    return a, b, sym(q), r


def _spec(what: str, a: Spec, b: Spec, q: Spec, r: Spec) -> Spec:
    require_inexact(what, a, b, q, r)
    return q


@primitive(family="tenferro-linalg.continuous_are.v1", extension="linalg")
def continuous_are_(a: Spec, b: Spec, q: Spec, r: Spec) -> Spec:
    """Stabilising solution of the continuous equation."""
    return _spec("solve_continuous_are", a, b, q, r)


@primitive(family="tenferro-linalg.discrete_are.v1", extension="linalg")
def discrete_are_(a: Spec, b: Spec, q: Spec, r: Spec) -> Spec:
    """Stabilising solution of the discrete equation."""
    return _spec("solve_discrete_are", a, b, q, r)


def _kernel(la: Any, ins: Any, outs: Any, *, what: str) -> Any:
    dtype = outs[0].dtype
    wide = np.promote_types(dtype, np.float64)

    def run(*operands: Any) -> Any:
        for x in operands:
            la.finite(what, x)
        operands = tuple(x.astype(wide) for x in operands)
        out = np.zeros(operands[2].shape, dtype)
        for index in np.ndindex(out.shape[:-2]) if out.size else ():
            try:
                with np.errstate(all="ignore"):
                    out[index] = _stabilising(what, *[x[index] for x in operands])
            except (LinAlgError, ValueError) as cause:
                where = f"matrix {index} of the stack" if index else "the matrix"
                raise NumericalError(
                    f"{what}: no stabilising solution was found for {where} ({cause}); check that the pair A, B can be "
                    "stabilised, and that R is invertible",
                    index=index,
                ) from cause
        return without_overflow(what, out)

    return run


def _stabilising(what: str, a: Any, b: Any, q: Any, r: Any) -> Any:
    """SciPy's solution of one equation; raises if it is not stabilising, as for some ill-conditioned ones."""
    linalg, discrete, ah = library("scipy.linalg"), what == "solve_discrete_are", a.conj().T
    if not b.size:
        return linalg.solve_discrete_lyapunov(ah, q) if discrete else linalg.solve_continuous_lyapunov(ah, -q)
    x = getattr(linalg, what)(a, b, q, r)
    bx = b.conj().T @ x
    gain = np.linalg.solve(r + bx @ b, bx @ a) if discrete else np.linalg.solve(r, bx)
    values = np.linalg.eigvals(a - b @ gain)
    slack, size = float(np.sqrt(np.finfo(np.float64).eps)), np.abs(values).max()
    if size > 1 + slack if discrete else values.real.max() > slack * size:
        raise LinAlgError("its closed loop is not stable")
    return x


def _terms(gain: Any, tangents: Any) -> tuple[Any, Any]:
    """``dA - dB K``, and ``dQ + K* dR K``."""
    da, db, dq, dr = tangents
    moved = total(da, None if db is None else -mm(db, gain))
    return moved, total(dq, None if dr is None else mm(adjoint(gain), dr, gain))


def _continuous_loop(primals: Any, x: Any) -> tuple[Any, Any]:
    a, b, _, r = primals
    gain = solve_(r, mm(adjoint(b), x))
    return gain, a - mm(b, gain)


def _discrete_loop(primals: Any, x: Any) -> tuple[Any, Any]:
    a, b, _, r = primals
    bx = mm(adjoint(b), x)
    gain = solve_(r + mm(bx, b), mm(bx, a))
    return gain, a - mm(b, gain)


def _continuous_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (x,) = outs
    gain, closed = _continuous_loop(primals, x)
    moved, change = _terms(gain, tangents)
    if moved is not None:
        along = mm(x, moved)
        change = total(change, along + adjoint(along))
    return (lyapunov("solve_continuous_are", closed, -change, turned=True),)


def _continuous_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, ...]:
    (x,) = outs
    gain, closed = _continuous_loop(primals, x)
    s = lyapunov("solve_continuous_are", closed, -sym(cotangents[0]))
    by = mm(x, s) * 2.0
    return by, -mm(by, adjoint(gain)), s, mm(gain, s, adjoint(gain))


def _discrete_jvp(primals: Any, tangents: Any, outs: Any) -> tuple[Any]:
    (x,) = outs
    gain, closed = _discrete_loop(primals, x)
    moved, change = _terms(gain, tangents)
    if moved is not None:
        along = mm(adjoint(closed), x, moved)
        change = total(change, along + adjoint(along))
    return (stein("solve_discrete_are", closed, change, turned=True),)


def _discrete_vjp(primals: Any, outs: Any, cotangents: Any) -> tuple[Any, ...]:
    (x,) = outs
    gain, closed = _discrete_loop(primals, x)
    s = stein("solve_discrete_are", closed, sym(cotangents[0]))
    by = mm(x, closed, s) * 2.0
    return by, -mm(by, adjoint(gain)), s, mm(gain, s, adjoint(gain))


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    for p, what, rule in (
        (continuous_are_, "solve_continuous_are", General(jvp=_continuous_jvp, vjp=_continuous_vjp)),
        (discrete_are_, "solve_discrete_are", General(jvp=_discrete_jvp, vjp=_discrete_vjp)),
    ):
        kernels(registry, p, partial(_kernel, what=what), devices=False)
        registry.rule(p, rule)
