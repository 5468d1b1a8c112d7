"""Matrices composed of blocks, or of vectors along their diagonals."""

from typing import Any

import numpy as np

from tenferro_linalg._algebra import cj
from tenferro_linalg._operands import common, inexact, integer, show, stacked, value
from tenferro_runtime.extension import ArgumentError, ShapeError
from tenferro_tensor import Array, broadcast_shapes, tensor
from tenferro_tensor.catalog import concatenate, iota, pad, reshape, reverse, slice_
from tenferro_tensor.functions import remainder as modulo
from tenferro_tensor.functions import take
from tenferro_tensor.functions.polynomials import vander  # noqa: F401 - a structured matrix of another module
from tenferro_tensor_core import DimLike, ask, int64
from tenferro_tensor_core.tracebacks import boundary


@boundary
def block_diag(*arrays: Any) -> Array:
    """Block diagonal matrix.

    Args:
        arrays: matrices (..., m, n) with batch axes that broadcast; a vector is a row, a number a 1 by 1 matrix.

    Returns:
        Matrix of the promoted dtype whose extents are the sums of those of the blocks; (1, 0) without blocks.

    >>> block_diag([[1, 2]], [[3], [4]])
    Tensor([[1, 2, 0],
            [0, 0, 3],
            [0, 0, 4]])
    """
    if not arrays:
        return tensor(np.zeros((1, 0)))
    blocks = [value(a) for a in arrays]
    blocks = list(
        common(*[reshape(b, shape=(*(1,) * (2 - b.ndim), *b.spec.shape)) if b.ndim < 2 else b for b in blocks])
    )
    batch = broadcast_shapes(*[b.spec.shape[:-2] for b in blocks])
    zero = (0,) * len(batch)
    total: DimLike = 0
    for b in blocks:
        total = total + b.spec.shape[-1]
    rows, before = [], 0
    for b in blocks:
        n = b.spec.shape[-1]
        wide = stacked(b, batch)
        rows.append(
            pad(wide, 0, low=(*zero, 0, before), high=(*zero, 0, total - before - n), interior=(0,) * wide.ndim)
        )
        before = before + n
    return concatenate(*rows, axis=len(batch)) if len(rows) > 1 else rows[0] + 0


@boundary
def toeplitz(c: Any, r: Any = None, /) -> Array:
    """Toeplitz matrices ``T[i, j] = c[i - j]`` below and ``r[j - i]`` above the diagonal.

    Args:
        c: first column (..., m).
        r: first row (..., n), whose first entry is not read; by default the conjugate of `c`.

    Returns:
        Matrices (..., m, n) of the promoted dtype.

    Raises:
        ShapeError: `c` or `r` is a number.

    See also: `solve_toeplitz`.

    >>> toeplitz([1, 2, 3], [1, 4])
    Tensor([[1, 4],
            [2, 1],
            [3, 2]])
    """
    c = _vector("toeplitz", c)
    c, r = common(c, cj(c) if r is None else _vector("toeplitz", r))
    m, n = c.spec.shape[-1], r.spec.shape[-1]
    c, r = _alike(c, r)
    v = concatenate(reverse(c, axes=(c.ndim - 1,)), _rest(r), axis=c.ndim - 1)
    return by_diagonals(v, m, n)


@boundary
def hankel(c: Any, r: Any = None, /) -> Array:
    """Hankel matrices, constant along anti-diagonals: ``H[i, j] = v[i + j]``.

    Args:
        c: first column (..., m).
        r: last row (..., n), whose first entry is not read; by default zeros.

    Returns:
        Matrices (..., m, n) of the promoted dtype.

    Raises:
        ShapeError: `c` or `r` is a number.

    >>> hankel([1, 2, 3])
    Tensor([[1, 2, 3],
            [2, 3, 0],
            [3, 0, 0]])
    """
    c = _vector("hankel", c)
    c, r = common(c, c * 0 if r is None else _vector("hankel", r))
    m, n = c.spec.shape[-1], r.spec.shape[-1]
    c, r = _alike(c, r)
    rows, columns = _places(m, n, c)
    return take(concatenate(c, _rest(r), axis=c.ndim - 1), rows + columns, axis=c.ndim - 1)


@boundary
def circulant(c: Any, /) -> Array:
    """Circulant matrices ``C[i, j] = c[(i - j) mod n]``.

    Args:
        c: first columns (..., n).

    Returns:
        Matrices (..., n, n) of the dtype of `c`.

    Raises:
        ShapeError: `c` is a number.

    See also: `solve_circulant`.

    >>> circulant([1, 2, 3])
    Tensor([[1, 3, 2],
            [2, 1, 3],
            [3, 2, 1]])
    """
    c = _vector("circulant", c)
    n = c.spec.shape[-1]
    rows, columns = _places(n, n, c)
    return take(c, modulo(rows - columns, n), axis=c.ndim - 1)


@boundary
def companion(a: Any, /) -> Array:
    """Companion matrix of a polynomial, whose eigenvalues are the roots.

    Args:
        a: coefficients (..., n), the highest power first and not zero, n >= 2.

    Returns:
        Matrices (..., n - 1, n - 1) of the dtype of `a`.

    Raises:
        ShapeError: there are fewer than two coefficients.

    >>> companion([1.0, -3.0, 2.0])
    Tensor([[ 3., -2.],
            [ 1.,  0.]])
    """
    a = inexact(_vector("companion", a))
    n = a.spec.shape[-1]
    if not isinstance(n, int) or n < 2:
        raise ShapeError(
            f"companion takes two coefficients or more, got shape {show(a.spec.shape)}", shape=a.spec.shape
        )
    batch = a.spec.shape[:-1]
    zero, ones = (0,) * len(batch), (1,) * a.ndim
    first = slice_(a, start=(*zero, 0), limit=(*batch, 1), stride=ones)
    row = -slice_(a, start=(*zero, 1), limit=(*batch, n), stride=ones) / first
    below = stacked(tensor(np.eye(n - 2, n - 1, dtype=a.dtype), device=a.spec.place.device), batch)
    return concatenate(reshape(row, shape=(*batch, 1, n - 1)), below, axis=len(batch))


@boundary
def convolution_matrix(a: Any, n: int, /, mode: str = "full") -> Array:
    """Matrix of a convolution: ``C @ v == convolve(a, v, mode)`` for vectors v of n entries.

    Args:
        a: vectors (..., m).
        n: length of v.
        mode: ``"full"``, ``"same"`` or ``"valid"``, as for NumPy's convolve.

    Returns:
        Matrices (..., l, n) of the dtype of `a`, where l is the length of the convolution.

    Raises:
        ArgumentError: `n` is not positive, `a` is empty or of symbolic size, or `mode` is none of the three.
        ShapeError: `a` is a number.

    >>> convolution_matrix([1, 2], 2)
    Tensor([[1, 0],
            [2, 1],
            [0, 2]])
    """
    a, n = _vector("convolution_matrix", a), integer("convolution_matrix", "n", n)
    m = a.spec.shape[-1]
    if not isinstance(m, int) or m < 1 or n < 1 or mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f"convolution_matrix takes a known, positive number of entries, n > 0 and a mode 'full', 'same' or "
            f"'valid', got shape {show(a.spec.shape)}, n={n} and mode={mode!r}"
        )
    zero = (0,) * (a.ndim - 1)
    v = pad(reverse(a, axes=(a.ndim - 1,)), 0, low=(*zero, n - 1), high=(*zero, n - 1), interior=(0,) * a.ndim)
    whole = by_diagonals(v, m + n - 1, n)
    length = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    first = (m + n - 1 - length) // 2
    batch = a.spec.shape[:-1]
    return slice_(whole, start=(*zero, first, 0), limit=(*batch, first + length, n), stride=(1,) * whole.ndim)


def by_diagonals(v: Any, m: Any, n: Any) -> Any:
    """Matrices (..., m, n) with entry ``v[m - 1 + j - i]`` at (i, j)."""
    rows, columns = _places(m, n, v)
    return take(v, columns - rows + (m - 1), axis=v.ndim - 1)


def _places(m: Any, n: Any, like: Any) -> tuple[Any, Any]:
    rows, columns = (iota(shape=(m, n), dtype=int64, axis=axis, place=like.spec.place) for axis in (0, 1))
    return rows, columns


def _vector(what: str, x: Any) -> Any:
    x = value(x)
    if x.ndim < 1:
        raise ShapeError(f"{what} takes vectors (..., n), got a number; wrap it in a list", shape=())
    return x


def _alike(c: Any, r: Any) -> tuple[Any, Any]:
    """Broadcast the batch axes of two vectors of any lengths."""
    batch = broadcast_shapes(c.spec.shape[:-1], r.spec.shape[:-1])
    out = []
    for v in (c, r):
        n = v.spec.shape[-1]
        wide = stacked(reshape(v, shape=(*v.spec.shape[:-1], 1, n)), batch)
        out.append(reshape(wide, shape=(*batch, n)))
    return out[0], out[1]


def _rest(r: Any) -> Any:
    """All entries but the first."""
    if ask(r.spec.shape[-1], "==", 0):
        return r
    zero = (0,) * (r.ndim - 1)
    return slice_(r, start=(*zero, 1), limit=r.spec.shape, stride=(1,) * r.ndim)
