"""Rotations of bases inside multiplets and null spaces, as matrix products, because the multiplets are data-dependent.

The vectors that diagonalise a matrix inside each multiplet are the eigenvectors of its restriction to the pairs within
multiplets, with the multiplets shifted far apart.
"""

from __future__ import annotations

from typing import Any

from tenferro_linalg import _multiplets as multiplets
from tenferro_linalg._bases import mixed, null_mixed


def adjoint(x: Any) -> Any:
    """Conjugate transpose of each matrix."""
    return x.conj().swapaxes(-1, -2)


def aligned(library: Any, inner: Any, number: Any) -> Any:
    """Unitary matrices that diagonalise Hermitian `inner` inside each run of equal `number`s, ascending."""
    xp = library("numpy")
    cut = xp.where(number[..., :, None] == number[..., None, :], inner, 0)
    reach = xp.linalg.norm(cut, axis=(-2, -1))
    apart = xp.where(reach > 0, 3 * reach, 1)[..., None] * number
    shifted = cut + apart[..., None] * xp.eye(inner.shape[-1], dtype=inner.dtype)
    turn, _ = library("lax.linalg").eigh(shifted, symmetrize_input=False)
    return _in_phase(xp, turn)


def _in_phase(xp: Any, turn: Any) -> Any:
    """Columns with real positive entries on the diagonal, so that single members stay unchanged."""
    d = xp.diagonal(turn, axis1=-2, axis2=-1)
    size = xp.abs(d)
    phase = xp.where(size > 0, d / xp.where(size > 0, size, 1), 1)
    return turn * phase.conj()[..., None, :]


def any_equal(xp: Any, number: Any) -> Any:
    """Whether two neighbours belong to one multiplet."""
    return (number[..., 1:] == number[..., :-1]).any()


def generic_eigh(library: Any, w: Any, v: Any) -> Any:
    """Eigenvectors with the basis of each multiplet mixed."""
    xp, n = library("numpy"), w.shape[-1]
    if n < 2:
        return v
    number = multiplets.labels(xp, w, n)
    turned = lambda v: v @ mixed(xp, number, v.dtype, 0)
    return library("lax").cond(any_equal(xp, number), turned, lambda v: v, v)


def adapted_eigh(library: Any, w: Any, v: Any, dx: Any) -> Any:
    """Eigenvectors rotated so that ``v* dx v`` is diagonal inside each multiplet, ascending."""
    xp, n = library("numpy"), w.shape[-1]
    if n < 2:
        return v
    number = multiplets.labels(xp, w, n)

    def turned(v: Any) -> Any:
        inner = adjoint(v) @ dx @ v
        return v @ aligned(library, (inner + adjoint(inner)) / 2, number)

    return library("lax").cond(any_equal(xp, number), turned, lambda v: v, v)


def rebased_svd(library: Any, u: Any, s: Any, vh: Any, dx: Any | None, size: int) -> tuple[Any, Any]:
    """Singular vectors in another basis of each multiplet and of the null spaces, as far as these are computed."""
    xp, k = library("numpy"), s.shape[-1]
    p, q = u.shape[-1], vh.shape[-2]
    if not k:
        return u, vh
    number, zero = multiplets.labels(xp, s, size), multiplets.null(xp, s, size)
    degenerate = xp.asarray(p > k or q > k) | any_equal(xp, number) | zero.any()

    def generic(vectors: tuple[Any, Any]) -> tuple[Any, Any]:
        u, v = vectors
        return u @ null_mixed(xp, number, zero, u, 1), v @ null_mixed(xp, number, zero, v, 2)

    def adapted(vectors: tuple[Any, Any]) -> tuple[Any, Any]:
        u, v = vectors
        inner = adjoint(u[..., :k]) @ dx @ v[..., :k]
        # Descending, like singular values; members of the null space stay unchanged.
        alone = xp.where(zero, number[..., -1:] + xp.arange(k), number)
        both = aligned(library, -(inner + adjoint(inner)) / 2, alone)
        u, v = (xp.concatenate([x[..., :k] @ both, x[..., k:]], axis=-1) for x in (u, v))
        null = [xp.concatenate([zero, xp.ones((*zero.shape[:-1], n - k), bool)], axis=-1) for n in (p, q)]
        inner = xp.where(null[0][..., :, None] & null[1][..., None, :], adjoint(u) @ dx @ v, 0)
        largest = xp.linalg.norm(inner, axis=(-2, -1))
        steps = xp.where(largest > 0, largest, 1)[..., None] * (2.0 + xp.arange(k, 0, -1))
        kept = xp.where(zero, 0, steps)[..., None] * xp.eye(k, dtype=u.dtype)
        inner = inner + xp.pad(kept, [(0, 0)] * (s.ndim - 1) + [(0, p - k), (0, q - k)])
        left, _, righth = xp.linalg.svd(inner, full_matrices=True)
        d = xp.diagonal(left, axis1=-2, axis2=-1)[..., :k]
        # Vectors of nonzero values keep their phases; those of the null spaces share theirs.
        phase = xp.where(zero, 1, d / xp.where(xp.abs(d) > 0, xp.abs(d), 1)).conj()
        left, right = (_times(xp, x, phase) for x in (left, adjoint(righth)))
        return u @ left, v @ right

    vectors = (u, adjoint(vh))
    u, v = library("lax").cond(degenerate, generic if dx is None else adapted, lambda x: x, vectors)
    return u, adjoint(v)


def _times(xp: Any, x: Any, phase: Any) -> Any:
    """Multiply the first columns by phases."""
    k = phase.shape[-1]
    return xp.concatenate([x[..., :k] * phase[..., None, :], x[..., k:]], axis=-1)
