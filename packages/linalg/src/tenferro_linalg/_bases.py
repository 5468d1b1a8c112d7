"""Bases of multiplets and null spaces: generic for recorded calls, adapted to the perturbation in forward mode.

LAPACK's choice among the bases of equal values is special: the unit vectors for a multiple of the identity. Tests of
cotangents in a special basis miss losses that depend on it. Recorded and traced calls therefore rotate the basis by a
fixed generic unitary; plain calls on concrete tensors return LAPACK's basis.

In forward mode the vectors of equal values move continuously only from the basis that diagonalises the
perturbation inside each multiplet; `adapted_*` rotate the primal vectors to it.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from tenferro_linalg import _multiplets as multiplets
from tenferro_runtime.batching import inner_array


@lru_cache(maxsize=32)
def _unitary(n: int, kind: str, side: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng([7, n, side])
    z = rng.standard_normal((n, n))
    if kind == "c":
        z = z + 1j * rng.standard_normal((n, n))
    return np.linalg.qr(z)[0]


def unitary(la: Any, n: int, dtype: Any, side: int = 0) -> Any:
    """The fixed generic unitary (orthogonal for real dtypes) of size `n`; each `side` has an independent one."""
    return la.xp.asarray(_unitary(n, dtype.kind, side).astype(dtype))


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
    number = multiplets.labels(la.xp, w, w.shape[-1])
    for index in _degenerate(la, number[..., 1:] == number[..., :-1]):
        for a, b in multiplets.runs(la.local(number[index]), w.shape[-1]):
            v[(*index, slice(None), slice(a, b))] = v[(*index, slice(None), slice(a, b))] @ unitary(la, b - a, v.dtype)
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


def rebased_svd(la: Any, x: Any, u: Any, s: Any, vh: Any, dx: Any | None) -> tuple[Any, Any, Any]:
    """Singular vectors in another basis of each multiplet and of the null spaces.

    If `dx` is ``None`` the basis is generic. Otherwise ``u* dx v`` is diagonal inside multiplets (its Hermitian part,
    for the pairs of a nonzero value) and inside the null spaces, which have independent bases on both sides.
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
            if dx is None:
                turn = unitary(la, b - a, ui.dtype)
            else:
                inner = _adjoint(left) @ dx[index] @ right
                turn = la.eigh((inner + _adjoint(inner)) / 2)[1][:, ::-1]
            ui[:, a:b], vi[:, a:b] = left @ turn, right @ turn
        p, q = ui.shape[-1] - rank, vi.shape[-1] - rank
        if (rank < k or extra) and (p or q):
            if dx is None:
                left, right = unitary(la, p, ui.dtype, 1), unitary(la, q, ui.dtype, 2)
            elif p and q:
                left, _, righth = la.svd(_adjoint(ui[:, rank:]) @ dx[index] @ vi[:, rank:], True)
                right = _adjoint(righth)
            else:
                left, right = la.xp.eye(p, dtype=ui.dtype), la.xp.eye(q, dtype=ui.dtype)
            ui[:, rank:], vi[:, rank:] = ui[:, rank:] @ left, vi[:, rank:] @ right
        u[index], vh[index] = ui[:, : u.shape[-1]], _adjoint(vi[:, : vh.shape[-2]])
    return u, s, vh
