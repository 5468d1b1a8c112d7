"""LU and polar factors, and exponentials of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg._bases import hermitian
from tenferro_linalg.stablehlo._factors import not_finite


def lu(library: Any, x: Any) -> Any:
    """Packed factors, the row exchanges, and the resulting order of the rows."""
    xp = library("numpy")
    if 0 in x.shape:
        shape = x.shape[:-2]
        pivots = xp.zeros((*shape, min(x.shape[-2:])), "int64")
        order = xp.broadcast_to(xp.arange(x.shape[-2], dtype="int64"), (*shape, x.shape[-2]))
        return x, pivots, order, xp.asarray(False)
    packed, pivots, order = library("lax.linalg").lu(x)
    return packed, pivots.astype("int64"), order.astype("int64"), not_finite(xp, x)


def permutation(library: Any, pivots: Any, *, rows: int) -> Any:
    """Order of the rows after the exchanges."""
    xp = library("numpy")
    if 0 in pivots.shape:
        return xp.broadcast_to(xp.arange(rows, dtype="int64"), (*pivots.shape[:-1], rows))
    return library("lax.linalg").lu_pivots_to_permutation(pivots.astype("int32"), rows).astype("int64")


def unitary_factor(library: Any, x: Any) -> Any:
    """Polar factor with orthonormal columns."""
    xp = library("numpy")
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return u @ vh, not_finite(xp, x, s)


def anticommutator(library: Any, p: Any, c: Any) -> Any:
    """Solution of ``P X + X P = C``, and whether P is singular."""
    xp = library("numpy")
    v, w = library("lax.linalg").eigh(hermitian(p), symmetrize_input=False)
    eps = float(np.finfo(c.dtype).eps)
    zero = w[..., :1] <= 8 * w.shape[-1] * eps * w[..., -1:]
    vh = v.conj().swapaxes(-1, -2)
    return v @ ((vh @ c @ v) / (w[..., :, None] + w[..., None, :])) @ vh, zero.any() | not_finite(xp, p)


def exponential(library: Any, x: Any, *factors: Any) -> Any:
    """The exponential, or a term of its derivative: the corner of the exponential of a block bidiagonal matrix."""
    xp, n, p = library("numpy"), x.shape[-1], len(factors)
    dtype = np.result_type(x.dtype, *[e.dtype for e in factors])
    shape = np.broadcast_shapes(x.shape, *[e.shape for e in factors])
    blocks = [xp.broadcast_to(b.astype(dtype), shape) for b in (x, *factors)]
    zero = xp.zeros(shape, dtype)
    rows = []
    for i in range(p + 1):
        row = [blocks[0] if j == i else blocks[j] if j == i + 1 else zero for j in range(p + 1)]
        rows.append(xp.concatenate(row, axis=-1))
    whole = xp.concatenate(rows, axis=-2)
    found = library("scipy.linalg").expm(whole) if whole.size else whole
    return found[..., :n, p * n :], not_finite(xp, *blocks)
