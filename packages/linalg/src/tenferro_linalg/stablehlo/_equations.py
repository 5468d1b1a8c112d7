"""Sylvester, Stein and Riccati equations.

Sylvester and Stein equations are solved column by column in a basis where the coefficients are triangular (Bartels
and Stewart 1972, Kitagawa 1977). The solution of a continuous Riccati equation is derived from the sign of the
Hamiltonian matrix (Roberts 1980, Byers 1987), that of a discrete one from doubling (Chu, Fan and Lin, Linear Algebra
Appl. 396, 2005); two Newton steps (Kleinman 1968, Hewer 1971) remove the remaining error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg.stablehlo._factors import inv, not_finite, solve
from tenferro_linalg.stablehlo._similarity import each, schur, triangular
from tenferro_linalg.stablehlo._turns import adjoint

MAX_DOUBLINGS = 60
"""Maximum number of doubling steps; each squares the remaining error."""


def complex_form(library: Any, t: Any, q: Any) -> tuple[Any, Any]:
    """Triangular T and its Q from a Schur form that may have 2 by 2 blocks."""
    if t.dtype.kind == "c":
        return t, q
    z: tuple[Any, Any] = library("scipy.linalg").rsf2csf(t, q)
    return z


def triangular_sylvester(library: Any, ta: Any, tb: Any, c: Any, left: bool = False, right: bool = False) -> Any:
    """Solution Y of ``A Y + Y B = c`` for one pair of triangular matrices, or their adjoints, and a flag.

    The flag is set if two eigenvalues add up to zero up to rounding, by the criterion of LAPACK's trsyl.
    """
    xp, n = library("numpy"), tb.shape[-1]
    identity = xp.eye(ta.shape[-1], dtype=ta.dtype)

    def column(step: Any, y: Any) -> Any:
        k = n - 1 - step if right else step
        known = y @ (tb[k].conj() if right else tb[:, k])
        here = tb[k, k].conj() if right else tb[k, k]
        matrix = ta + (here.conj() if left else here) * identity
        return y.at[:, k].set(triangular(library, matrix, c[:, k] - known, adjoint=left))

    da, db = xp.diagonal(ta), xp.diagonal(tb)
    sums = (da.conj() if left else da)[:, None] + (db.conj() if right else db)
    info = np.finfo(c.dtype)
    least = xp.maximum(float(info.eps) * xp.maximum(xp.abs(ta).max(), xp.abs(tb).max()), float(info.tiny))
    # The column of a singular pair is not finite; the flag reports it.
    return library("lax").fori_loop(0, n, column, xp.zeros_like(c)), (xp.abs(sums) <= least).any()


def sylvester(
    library: Any, a: Any, qa: Any, ta: Any, b: Any, qb: Any, tb: Any, c: Any, *, left: bool, right: bool
) -> Any:
    """Solution of ``A X + X B = c``; A is the adjoint of a if `left`, B that of b if `right`."""
    xp = library("numpy")
    if not c.size:
        return c, xp.asarray(False)
    (sa, ua), (sb, ub) = complex_form(library, ta, qa), complex_form(library, tb, qb)
    solved = each(
        library, lambda s, t, f: triangular_sylvester(library, s, t, f, left, right), "(m,m),(n,n),(m,n)->(m,n),()"
    )
    y, singular = solved(sa, sb, adjoint(ua) @ c.astype(sa.dtype) @ ub)
    x = ua @ y @ adjoint(ub)
    x = x if c.dtype.kind == "c" else x.real
    return x.astype(c.dtype), not_finite(xp, c, x) | singular.any()


def stein(library: Any, a: Any, q: Any, t: Any, c: Any, *, turned: bool) -> Any:
    """Solution of ``X - a X a* = c``, or of ``X - a* X a = c`` if `turned`."""
    xp, n = library("numpy"), a.shape[-1]
    if not c.size:
        return c, xp.asarray(False)
    identity = xp.eye(n, dtype=t.dtype)

    def one(t: Any, f: Any) -> Any:
        op = adjoint(t) if turned else t

        def column(step: Any, y: Any) -> Any:
            k = step if turned else n - 1 - step
            known = op @ (y @ (t[:, k] if turned else t[k].conj()))
            matrix = identity - t[k, k].conj() * t
            return y.at[:, k].set(triangular(library, matrix, f[:, k] + known, adjoint=turned))

        d = xp.diagonal(t)
        gaps = xp.abs(1 - d.conj()[:, None] * d)
        largest = xp.abs(identity - d.conj()[:, None, None] * t).max(axis=(-2, -1))
        close = gaps.min(axis=-1) <= float(np.finfo(t.dtype).eps) * n * xp.maximum(1.0, largest)
        return library("lax").fori_loop(0, n, column, xp.zeros_like(f)), close.any()

    qh = adjoint(q)
    y, singular = each(library, one, "(n,n),(n,n)->(n,n),()")(t, qh @ c.astype(t.dtype) @ q)
    x = q @ y @ qh
    x = (x if c.dtype.kind == "c" else x.real).astype(c.dtype)
    return x, not_finite(xp, c, x) | singular.any()


def _schur(library: Any, a: Any) -> tuple[Any, Any]:
    t, q, _ = schur(library, a.astype(np.result_type(a.dtype, np.complex64)))
    return t, q


def _hermitian(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def _sign(library: Any, x: Any) -> Any:
    """The sign of stacks of matrices by Newton's iteration, scaled by norms (Higham 2008, section 5)."""
    xp, eps = library("numpy"), float(np.finfo(x.dtype).eps)

    def size(x: Any) -> Any:
        return xp.abs(x).max(axis=(-2, -1), keepdims=True)

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        x, _, count = state
        y = inv(library, x, what="sign")[0]
        change = size(x - y)
        scale = xp.where(change > 0.02 * size(x), xp.sqrt(size(y) / size(x)), 1)
        new = (x * scale + y / scale) / 2
        return new, (size(new - x) > 16 * x.shape[-1] * eps * size(new)).any(), count + 1

    state = (x / xp.maximum(size(x), float(np.finfo(x.dtype).tiny)), xp.asarray(True), 0)
    return library("lax").while_loop(lambda s: s[1] & (s[2] < MAX_DOUBLINGS), step, state)[0]


def continuous_are(library: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
    """The stabilising solution of ``a* X + X a - X b r^-1 b* X + q = 0``."""
    xp, n, dtype = library("numpy"), a.shape[-1], q.dtype
    if not q.size:
        return q, xp.asarray(False)
    a, b, q, r = _wide(a, b, q, r)

    def gain_of(x: Any) -> Any:
        return solve(library, r, adjoint(b) @ x)[0]

    g = b @ gain_of(xp.broadcast_to(xp.eye(n, dtype=a.dtype), a.shape))
    # The sign is insensitive to the scale of X, so the equation is written for X / s.
    s = xp.sqrt(_norm(xp, q) / xp.where(_norm(xp, g) > 0, _norm(xp, g), 1))
    s = xp.where(s > 0, s, 1)
    whole = _blocks(xp, a, -g * s, -q / s, -adjoint(a))
    w = _sign(library, whole)
    one = xp.eye(n, dtype=a.dtype)
    left = xp.concatenate([w[..., :n, n:], w[..., n:, n:] + one], axis=-2)
    right = -xp.concatenate([w[..., :n, :n] + one, w[..., n:, :n]], axis=-2)
    x = _hermitian(_least_squares(library, left, right)) * s

    def newton(_: Any, state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        x, gain, rest, _ = state
        closed = a - b @ gain
        t, u = _schur(library, closed)
        change, _ = sylvester(library, closed, u, t, closed, u, t, rest, left=True, right=False)
        stable = (xp.diagonal(t, axis1=-2, axis2=-1).real < 0).all()
        return (*of(_hermitian(x - change)), stable)

    def of(x: Any) -> tuple[Any, Any, Any]:
        """X, its gain, and its residual."""
        gain = gain_of(x)
        return x, gain, adjoint(a) @ x + x @ a - adjoint(gain) @ (r @ gain) + q

    x, gain, rest, stable = library("lax").fori_loop(0, 2, newton, (*of(x), xp.asarray(True)))
    return x.astype(dtype), _bad(library, rest, x, a, q, gain, r) | ~stable


def discrete_are(library: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
    """The stabilising solution of ``a* X a - X - a* X b (r + b* X b)^-1 b* X a + q = 0``."""
    xp, n, dtype = library("numpy"), a.shape[-1], q.dtype
    if not q.size:
        return q, xp.asarray(False)
    a, b, q, r = _wide(a, b, q, r)
    one = xp.broadcast_to(xp.eye(n, dtype=a.dtype), a.shape)
    g = b @ solve(library, r, adjoint(b))[0]

    def double(state: tuple[Any, ...]) -> tuple[Any, ...]:
        ak, gk, hk, _, count = state
        both = solve(library, one + gk @ hk, xp.concatenate([ak, gk], axis=-1))[0]
        wa, wg = both[..., :n], both[..., n:]
        more = adjoint(ak) @ hk @ wa
        going = (_norm(xp, more) > float(np.finfo(a.dtype).eps) * _norm(xp, hk)).any()
        return ak @ wa, _hermitian(gk + ak @ wg @ adjoint(ak)), _hermitian(hk + more), going, count + 1

    state = (a, g, q, xp.asarray(True), 0)
    x = library("lax").while_loop(lambda s: s[3] & (s[4] < MAX_DOUBLINGS), double, state)[2]

    def newton(_: Any, state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        x, gain, rest, _ = state
        closed = a - b @ gain
        t, u = _schur(library, closed)
        change, _ = stein(library, closed, u, t, _hermitian(rest), turned=True)
        stable = (xp.abs(xp.diagonal(t, axis1=-2, axis2=-1)) < 1).all()
        return (*of(_hermitian(x + change)), stable)

    def of(x: Any) -> tuple[Any, Any, Any]:
        """X, its gain, and its residual."""
        bx = adjoint(b) @ x
        gain = solve(library, r + bx @ b, bx @ a)[0]
        return x, gain, adjoint(a) @ x @ (a - b @ gain) - x + q

    x, gain, rest, stable = library("lax").fori_loop(0, 2, newton, (*of(x), xp.asarray(True)))
    return x.astype(dtype), _bad(library, rest, x, a, q, gain, r) | ~stable


def _wide(*xs: Any) -> tuple[Any, ...]:
    return tuple([x.astype(np.result_type(x.dtype, np.float64)) for x in xs])


def _norm(xp: Any, x: Any) -> Any:
    return xp.abs(x).max(axis=(-2, -1), keepdims=True)


def _blocks(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return xp.concatenate([xp.concatenate([a, b], axis=-1), xp.concatenate([c, d], axis=-1)], axis=-2)


def _least_squares(library: Any, a: Any, b: Any) -> Any:
    """The solution for matrices of full column rank, by QR."""
    q, r = library("numpy").linalg.qr(a)
    return triangular(library, r, adjoint(q) @ b)


def _bad(library: Any, rest: Any, x: Any, a: Any, q: Any, gain: Any, r: Any) -> Any:
    """Whether the residual exceeds rounding, compared with the terms of the equation."""
    xp, n = library("numpy"), x.shape[-1]
    size = (1 + _norm(xp, a)) ** 2 * _norm(xp, x) * n + _norm(xp, q) + _norm(xp, gain) ** 2 * _norm(xp, r)
    return not_finite(xp, x) | (_norm(xp, rest) > 1e4 * n * float(np.finfo(x.dtype).eps) * size).any()
