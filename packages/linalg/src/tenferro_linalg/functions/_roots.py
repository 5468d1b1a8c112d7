"""Square roots and logarithms of chains, one matrix at a time, in a basis where the matrix is triangular.

The root of a triangular matrix is computed column by column (Björck and Hammarling 1983), and that of blocks above it
from Sylvester equations. The logarithm takes roots until the matrix is close to the identity, and then a Padé
approximant in partial fractions (Al-Mohy and Higham, SIAM J. Sci. Comput. 34, 2012). All in double precision.

Eigenvalues below rounding count as zero; those that are negative up to rounding have roots on the positive imaginary
axis, and logarithms with the imaginary part pi.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tenferro_linalg._errors import DegenerateError
from tenferro_linalg.functions._call import MatrixCall
from tenferro_linalg.functions._chains import Chain
from tenferro_runtime.extension import NumericalError

PADE_DEGREE, PADE_MAX_NORM = 8, 0.264
"""Degree of the Padé approximant of the logarithm, and the distance from the identity up to which it is exact."""

MAX_ROOTS = 100
"""Maximum number of roots for a logarithm; a matrix of norm 1e300 takes about ten."""

EPS = float(np.finfo(np.float64).eps)


def square_root(call: MatrixCall, chain: Chain) -> Chain:
    """Principal square roots of stacks (b, n, n)."""
    return _each(call, chain, _root_of)


def logarithm(call: MatrixCall, chain: Chain) -> Chain:
    """Principal logarithms of stacks (b, n, n)."""
    return _each(call, chain, _logarithm_of)


def _each(call: MatrixCall, chain: Chain, f: Callable[[MatrixCall, int, Chain], Chain]) -> Chain:
    dtype, real = np.dtype(np.complex128), call.dtype.kind != "c"
    wide = chain.map(lambda block: block.astype(dtype))
    t, q = call.la.schur(wide.diagonal, call.what)
    qh = q.conj().swapaxes(-1, -2)
    inner = wide.map(lambda block: qh @ block @ q)
    inner.diagonal = t
    out = np.empty_like(t)
    for k in range(len(t)):
        one = f(call, k, inner.map(lambda block, k=k: block[k]))  # type: ignore[misc]
        out[k] = one.corner
    found = q @ out @ qh
    return Chain(found.real.astype(call.dtype) if real and chain.order else _fitting(call, t, found), {}, 0)


def _fitting(call: MatrixCall, t: Any, out: Any) -> Any:
    """The results, real for real matrices without eigenvalues on the branch cut.

    Derivatives need no test: the value has passed it, and they may vanish up to rounding.
    """
    if call.dtype.kind == "c":
        return out.astype(call.dtype, copy=False)
    # The logarithm of the identity up to rounding consists of rounding errors.
    size = np.maximum(np.abs(out).max(axis=(-2, -1)), 1.0 if call.what == "logm" else 0.0)
    bad = np.abs(out.imag).max(axis=(-2, -1)) > EPS**0.5 * size
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        values = np.diagonal(t[k])
        negative = values[values.real < 0]
        if len(negative):
            seen = f"the eigenvalue {negative[np.abs(negative.imag).argmin()].real:.6g}"
        else:
            seen = "an eigenvalue next to the negative axis"
        raise NumericalError(
            f"{call.what}: {call.where(k)} is real and has {seen} on the branch cut, where the result is complex; "
            "convert it first, x.astype(complex128)",
            index=call.place(k),
        )
    return out.real.astype(call.dtype)


def _zeros(t: Any) -> Any:
    """Which eigenvalues of a triangular matrix vanish up to rounding."""
    return np.abs(np.diagonal(t)) <= len(t) * EPS * np.abs(t).max()


def _snapped(values: Any, size: float) -> Any:
    """Eigenvalues, with negative ones moved exactly to the upper side of the branch cut."""
    on = (values.real < 0) & (np.abs(values.imag) <= len(values) * EPS * size)
    return np.where(on, values.real + 0j, values)


def _root_of(call: MatrixCall, k: int, x: Chain) -> Chain:
    zero = _zeros(x.diagonal)
    if x.order and zero.any():
        i = int(np.flatnonzero(zero)[0])
        raise DegenerateError(
            f"{call.what}: {call.where(k)} has the eigenvalue zero, where the square root is not differentiable; "
            "add a multiple of the identity, or stop the gradient there",
            output=call.what,
            pair=(i, i),
            batch=call.place(k),
            gap=0.0,
        )
    root = _triangular_root(call, x.diagonal, zero)
    if root is None:
        raise NumericalError(
            f"{call.what}: {call.where(k)} has the eigenvalue zero in a Jordan block, where a square root need not "
            "exist; perturb the matrix slightly",
            index=call.place(k),
        )
    return _root_above(call, x, root)


def _triangular_root(call: MatrixCall, t: Any, zero: Any) -> Any:
    """The root of a triangular matrix; None if a zero eigenvalue is in a Jordan block."""
    size = float(np.abs(t).max(initial=0))
    values = np.sqrt(np.where(zero, 0, _snapped(np.diagonal(t), size)))
    out = np.diag(values)
    out = np.asfortranarray(out)
    for j in range(1, len(t)):
        right = t[:j, j].copy()
        if zero[j] and zero[:j].any():
            column = _semisimple(out[:j, :j], right, zero, size)
            if column is None:
                return None
        else:
            column = _solved(call, out[:j, :j] + values[j] * np.eye(j), right)
        out[:j, j] = column
    return out


def _solved(call: MatrixCall, matrix: Any, right: Any) -> Any:
    return call.la.lapack("trtrs", matrix.dtype)(matrix, right)[0]


def _semisimple(root: Any, right: Any, zero: Any, size: float) -> Any:
    """A column of a zero eigenvalue, beside other zero eigenvalues; None if it requires division by zero."""
    for i in reversed(range(len(right))):
        rest = right[i] - root[i, i + 1 :] @ right[i + 1 :]
        if zero[i]:
            if abs(rest) > 16 * len(root) * EPS * size:
                return None
            right[i] = 0
        else:
            right[i] = rest / root[i, i]
    return right


def _root_above(call: MatrixCall, x: Chain, root: Any) -> Chain:
    """The blocks above the diagonal: ``R X + X R`` is the block minus products of nearer ones."""
    out = Chain(root, {}, x.order)
    trsyl = call.la.lapack("trsyl", root.dtype)
    for i, j in x.places():
        known = x.above.get((i, j), 0)
        for m in range(i + 1, j):
            known = known - out.above[i, m] @ out.above[m, j]
        y, scale, _ = trsyl(root, root, known)
        out.above[i, j] = y / scale
    return out


@lru_cache(maxsize=1)
def _fractions() -> tuple[Any, Any]:
    """Nodes and weights of the approximant: Gauss's on [0, 1] (Higham 2001)."""
    nodes, weights = np.polynomial.legendre.leggauss(PADE_DEGREE)
    return (1 + nodes) / 2, weights / 2


def _logarithm_of(call: MatrixCall, k: int, x: Chain) -> Chain:
    t = x.diagonal
    n, zero = len(t), _zeros(t)
    if zero.any():
        raise NumericalError(
            f"{call.what}: {call.where(k)} is singular up to rounding and has no logarithm; "
            "add a multiple of the identity",
            index=call.place(k),
        )
    values = _snapped(np.diagonal(t), float(np.abs(t).max()))
    identity, roots, none = np.eye(n), 0, np.zeros(n, bool)
    x = Chain(t - np.diag(np.diagonal(t)) + np.diag(values), x.above, x.order)
    while np.abs(x.diagonal - identity).sum(axis=0).max() > PADE_MAX_NORM and roots < MAX_ROOTS:
        x = _root_above(call, x, _triangular_root(call, x.diagonal, none))
        roots += 1
    less = x.plus(-identity)
    np.fill_diagonal(less.diagonal, _less_one(values, roots))
    out: Chain | None = None
    for node, weight in zip(*_fractions()):
        down = (less * node).plus(identity)
        part = down.solved(less, lambda right, down=down: _solved(call, down.diagonal, right)) * weight
        out = part if out is None else out + part
    assert out is not None
    out = out * float(np.ldexp(1.0, roots))
    np.fill_diagonal(out.diagonal, np.log(values))
    return out


def _less_one(values: Any, roots: int) -> Any:
    """``values ** (1 / 2**roots) - 1`` without cancellation (Al-Mohy 2012)."""
    if not roots:
        return values - 1
    first = np.sqrt(values)
    below, product = first - 1, np.ones_like(first)
    if roots == 1:
        return below
    # Take one root first, so that 1 + root does not vanish.
    numerator = below
    for _ in range(roots - 1):
        first = np.sqrt(first)
        product = product * (1 + first)
    return numerator / product
