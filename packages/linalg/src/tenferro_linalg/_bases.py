"""Bases of multiplets and null spaces: generic for recorded calls, adapted to the perturbation in forward mode.

LAPACK's choice among the bases of equal values is special: the unit vectors for a multiple of the identity. Tests of
cotangents in a special basis miss losses that depend on it. Calls whose derivative is recorded therefore rotate the
basis by a fixed generic unitary, the product of a phase and two reflections, which costs little beside a decomposition
and can be applied without a matrix (see `loops._turns`); others return LAPACK's basis.

In forward mode the vectors of equal values move continuously only from the basis that diagonalises the
perturbation inside each multiplet; `adapted_*` rotate the primal vectors to it.
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np

from tenferro_linalg import _multiplets as multiplets
from tenferro_runtime.batching import inner_array

PHASES: Final = (0.6 + 0.8j, (5 + 12j) / 13, (15 + 8j) / 17, (7 + 24j) / 25)
"""Phases of generic unitary matrices of complex dtypes, by side."""

FACTORS: Final = (7919, 104729)
MODULUS: Final = 1000003
"""Constants of `fraction`."""

COMPLETION: Final = 64
"""Number of the first sequence of the vectors that complete a null space."""


def fraction(j: Any, k: Any) -> Any:
    """An irregular integer in [0, `MODULUS`) for each position and each sequence.

    Args:
        j: positions, from 0.
        k: number of the sequence.
    """
    return ((j + 1) * (j + k) * FACTORS[0] + k * FACTORS[1]) % MODULUS


def _numbers(j: Any, k: Any, least: float, cplx: bool) -> Any:
    """Generic numbers whose parts are between `least` and ``least + 1``; `k` and ``k + 1`` are their sequences."""
    re, im = (least + fraction(j, k + part) / MODULUS for part in (0, 1))
    return re + 1j * im if cplx else re


def mixed(xp: Any, number: Any, dtype: Any, sides: Any) -> Any:
    """The generic unitary matrices that mix the members of each run, and nothing else.

    Args:
        xp: the array namespace.
        number: a number for each vector (..., n), equal for those of one run, which are neighbours.
        dtype: dtype of the matrices.
        sides: a number, or one for each vector (..., n): each side has independent matrices.

    Returns:
        Matrices (..., n, n).
    """
    if xp is np and number.size <= multiplets.CACHED_MAX_VALUES:
        sides = np.broadcast_to(np.asarray(sides, np.int64), number.shape)
        return _kept(number.tobytes(), sides.tobytes(), number.shape, dtype.char)
    return _mixed(xp, number, dtype, sides)


@lru_cache(maxsize=64)
def _kept(number: bytes, sides: bytes, shape: tuple[int, ...], char: str) -> np.ndarray[Any, Any]:
    """Cached form for a few vectors; calls in a loop often have the same runs."""
    found = [np.frombuffer(x, np.int64).reshape(shape) for x in (number, sides)]
    return _mixed(np, found[0], np.dtype(char), found[1])


def _mixed(xp: Any, number: Any, dtype: Any, sides: Any) -> Any:
    n, cplx = number.shape[-1], dtype.kind == "c"
    same = number[..., :, None] == number[..., None, :]
    place = xp.tril(same, -1).sum(axis=-1)
    alone = (same.sum(axis=-1) == 1)[..., None, :]
    one = xp.eye(n, dtype=dtype)
    turns = []
    for k in (4 * sides, 4 * sides + 2):
        u = _numbers(place, k, 0.5, cplx)
        size = xp.where(same, (u.conj() * u).real[..., None, :], 0).sum(axis=-1)
        back = (2 / size * u.conj())[..., None, :]
        turns.append(one - xp.where(same & ~alone, u[..., :, None] * back, 0).astype(dtype))
    turn = turns[0] @ turns[1]
    if not cplx:
        return turn
    sides = (sides + 0 * number)[..., None, :]
    phase = xp.asarray(np.array(PHASES, dtype))[sides % len(PHASES)]
    return turn * xp.where(alone & (sides == 0), 1, phase)


def unitary(la: Any, n: int, dtype: Any, side: int = 0) -> Any:
    """The fixed generic unitary (orthogonal for real dtypes) of size `n`; each `side` has an independent one."""
    return la.xp.asarray(mixed(np, np.zeros(n, np.int64), dtype, side))


def follows(x: Any, dx: Any) -> bool:
    """Whether the basis can follow the tangent, which must be known when the values are computed.

    A linearisation has one basis for all tangents; its rule instead tests that the tangent does not mix the vectors.
    """
    return bool(inner_array(dx).level <= inner_array(x).level)


def _adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


def hermitian(x: Any) -> Any:
    """Hermitian part of raw matrices, halved before the sum to avoid overflow."""
    half = x * x.dtype.type(0.5)
    return half + half.conj().swapaxes(-1, -2)


def _degenerate(la: Any, same: Any) -> list[tuple[int, ...]]:
    """Indices of the matrices of a stack in which a flag is set."""
    flags = la.local(same.any(axis=-1))
    return [tuple(int(k) for k in index) for index in np.argwhere(flags)]


def generic_eigh(la: Any, w: Any, v: Any) -> Any:
    """Eigenvectors with the basis of each multiplet rotated by a fixed generic unitary."""
    if multiplets.regular(la.xp, w, w.shape[-1], False):
        return v
    return v @ mixed(la.xp, multiplets.labels(la.xp, w, w.shape[-1]), v.dtype, 0)


def generic_svd(la: Any, u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    """Singular vectors in a generic basis of each multiplet and of the null spaces, which have one on each side."""
    (m, p), (q, n), k = u.shape[-2:], vh.shape[-2:], s.shape[-1]
    size = max(m, n)
    if p == k == q and multiplets.regular(la.xp, s, size, True):
        return u, s, vh
    number, zero = multiplets.labels(la.xp, s, size), multiplets.null(la.xp, s, size)
    u, v = (_completed(la, x, zero) for x in (u, _adjoint(vh)))
    u, v = (x @ null_mixed(la.xp, number, zero, x, side) for x, side in ((u, 1), (v, 2)))
    return u, s, _adjoint(v)


def null_mixed(xp: Any, number: Any, zero: Any, vectors: Any, side: int) -> Any:
    """`mixed` for singular vectors of one side: the null space, with vectors beyond the values, has its own matrix."""
    extra = vectors.shape[-1] - number.shape[-1]
    number = xp.where(zero, -1, number)
    if extra:
        beyond = xp.full((*number.shape[:-1], extra), -1)
        number = xp.concatenate([number, beyond], axis=-1)
    return mixed(xp, number, vectors.dtype, xp.where(number < 0, side, 0))


def _completed(la: Any, v: Any, zero: Any) -> Any:
    """Vectors with null vectors from all of the null space, of which only a part may be there."""
    m, k = v.shape[-2:]
    if m == k:
        return v
    others = _numbers(np.arange(m)[:, None], COMPLETION + 2 * np.arange(k), -0.5, v.dtype.kind == "c")
    others = la.xp.asarray(others.astype(v.dtype))
    for index in _degenerate(la, zero):
        null = zero[index]
        found = la.qr(la.xp.where(null, others, v[index]), "reduced")[0]
        v[index] = la.xp.where(null, found, v[index])
    return v


def adapted_eigh(la: Any, w: Any, v: Any, dx: Any) -> Any:
    """Eigenvectors rotated so that ``v* dx v`` is diagonal inside each multiplet, ascending."""
    if multiplets.regular(la.xp, w, w.shape[-1], False):
        return v
    number = multiplets.labels(la.xp, w, w.shape[-1])
    for index in _degenerate(la, number[..., 1:] == number[..., :-1]):
        for a, b in multiplets.runs(la.local(number[index]), w.shape[-1]):
            columns = v[(*index, slice(None), slice(a, b))]
            inner = _adjoint(columns) @ dx[index] @ columns
            v[(*index, slice(None), slice(a, b))] = columns @ la.eigh((inner + _adjoint(inner)) / 2)[1]
    return v


def adapted_svd(la: Any, x: Any, u: Any, s: Any, vh: Any, dx: Any) -> tuple[Any, Any, Any]:
    """Singular vectors in another basis of each multiplet and of the null spaces.

    There ``u* dx v`` is diagonal inside multiplets (its Hermitian part, for the pairs of a nonzero value) and inside
    the null spaces, which have independent bases on both sides.
    """
    m, n = x.shape[-2:]
    k, size = s.shape[-1], max(m, n)
    extra = u.shape[-1] > k or vh.shape[-2] > k
    if not extra and multiplets.regular(la.xp, s, size, True):
        return u, s, vh
    number, zero = multiplets.labels(la.xp, s, size), multiplets.null(la.xp, s, size)
    flags = la.xp.concatenate([number[..., 1:] == number[..., :-1], zero], axis=-1)
    for index in np.ndindex(s.shape[:-1]) if extra else _degenerate(la, flags):
        rank = k - int(la.local(zero[index]).sum())
        ui, vi = u[index], _adjoint(vh[index])
        if rank < k and (ui.shape[-1] < m or vi.shape[-1] < n):  # the null spaces are larger than the computed part
            ui, _, vhi = la.svd(x[index], True)
            vi = _adjoint(vhi)
        ui, vi = ui.copy(), vi.copy()
        for a, b in multiplets.runs(la.local(number[index]), rank):
            left, right = ui[:, a:b], vi[:, a:b]
            inner = _adjoint(left) @ dx[index] @ right
            turn = la.eigh((inner + _adjoint(inner)) / 2)[1][:, ::-1]
            ui[:, a:b], vi[:, a:b] = left @ turn, right @ turn
        p, q = ui.shape[-1] - rank, vi.shape[-1] - rank
        if (rank < k or extra) and p and q:
            left, _, righth = la.svd(_adjoint(ui[:, rank:]) @ dx[index] @ vi[:, rank:], True)
            ui[:, rank:], vi[:, rank:] = ui[:, rank:] @ left, vi[:, rank:] @ _adjoint(righth)
        u[index], vh[index] = ui[:, : u.shape[-1]], _adjoint(vi[:, : vh.shape[-2]])
    return u, s, vh
