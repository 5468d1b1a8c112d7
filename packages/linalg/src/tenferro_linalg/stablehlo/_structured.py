"""Banded, tridiagonal, Toeplitz, circulant and sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg.stablehlo._factors import not_finite, solve


def banded_solve(library: Any, ab: Any, b: Any, *, lower: int, upper: int, positive: bool) -> Any:
    """Solution of banded equations, by elimination in a window that moves along the diagonal.

    At step i the window holds the rows with an entry in column i, from this column on; row exchanges stay inside it, as
    in LAPACK's gbsv. Positive definite matrices need none.
    """
    xp, lax = library("numpy"), library("lax")
    n = ab.shape[-1]
    if 0 in b.shape:
        return b, xp.asarray(False)
    width = lower + upper + 1
    bands = _row_bands(xp, ab.reshape(-1, *ab.shape[-2:]), lower, upper)
    sides = xp.pad(b.reshape(-1, *b.shape[-2:]), [(0, 0), (0, lower + 1), (0, 0)])
    start = [xp.pad(bands[:, r, lower - r :], [(0, 0), (0, lower - r)]) for r in range(lower + 1)]
    order = xp.arange(lower + 1)

    def eliminate(state: tuple[Any, Any], following: tuple[Any, Any]) -> tuple[Any, Any]:
        rows, right = state
        if not positive:
            best = xp.argmax(_size(xp, rows[:, :, 0]), axis=1)[:, None]
            exchanged = xp.where(order == 0, best, xp.where(order == best, 0, order))[..., None]
            rows, right = (xp.take_along_axis(x, exchanged, axis=1) for x in (rows, right))
        pivot, first = rows[:, 0], right[:, 0]
        bad = (pivot[:, 0].real <= 0) if positive else (pivot[:, 0] == 0)
        factor = rows[:, 1:, 0] / pivot[:, :1]
        rows = rows[:, 1:, 1:] - factor[..., None] * pivot[:, None, 1:]
        right = right[:, 1:] - factor[..., None] * first[:, None]
        rows = xp.concatenate([xp.pad(rows, [(0, 0), (0, 0), (0, 1)]), following[0][:, None]], axis=1)
        right = xp.concatenate([right, following[1][:, None]], axis=1)
        return (rows, right), (pivot, first, bad.any())

    def substitute(known: Any, row: tuple[Any, Any]) -> tuple[Any, Any]:
        pivot, first = row
        x = (first - xp.einsum("bd,bdk->bk", pivot[:, 1:], known)) / pivot[:, :1]
        return xp.concatenate([x[:, None], known], axis=1)[:, : width - 1], x

    def over(x: Any) -> Any:
        """The rows that enter the window, one after the other."""
        return xp.moveaxis(x[:, lower + 1 :], 1, 0)

    _, (pivots, firsts, bad) = lax.scan(
        eliminate, (xp.stack(start, axis=1), sides[:, : lower + 1]), (over(bands), over(sides))
    )
    known = xp.zeros((len(bands), width - 1, b.shape[-1]), b.dtype)
    found = lax.scan(substitute, known, (pivots, firsts), reverse=True)[1]
    x = xp.moveaxis(found, 0, 1).reshape(b.shape)
    assert x.shape[-2] == n
    return x, bad.any() | not_finite(xp, ab)


def _row_bands(xp: Any, ab: Any, lower: int, upper: int) -> Any:
    """Row i from column ``i - lower`` to ``i + upper``, followed by rows of zeros."""
    n = ab.shape[-1]
    rows, bands = xp.arange(n), []
    for d in reversed(range(lower + upper + 1)):  # the entry of row i in column i + upper - d is in column of ab
        column = rows + upper - d
        inside = (column >= 0) & (column < n)
        bands.append(xp.where(inside, ab[:, d, xp.clip(column, 0, n - 1)], 0))
    return xp.pad(xp.stack(bands, axis=-1), [(0, 0), (0, lower + 1), (0, 0)])


def _size(xp: Any, x: Any) -> Any:
    """The scale that LAPACK compares pivots with."""
    return xp.abs(x.real) + xp.abs(x.imag) if x.dtype.kind == "c" else xp.abs(x)


def eigvalsh_tridiagonal(library: Any, d: Any, e: Any) -> Any:
    """Eigenvalues, computed from the dense matrix."""
    xp, n = library("numpy"), d.shape[-1]
    if not d.size:
        return d, xp.asarray(False)
    below = xp.pad(e, [(0, 0)] * (e.ndim - 1) + [(0, 1)])[..., None] * xp.eye(n, k=1, dtype=d.dtype)
    dense = d[..., None] * xp.eye(n, dtype=d.dtype) + below + below.swapaxes(-1, -2)
    w = xp.linalg.eigvalsh(dense, symmetrize_input=False)
    return w, not_finite(xp, d, e, w)


def toeplitz_solve(library: Any, v: Any, b: Any) -> Any:
    """Solution by LU factors of the dense matrix; Levinson's recursion is not always stable."""
    xp, n = library("numpy"), b.shape[-2]
    if 0 in b.shape:
        return b, xp.asarray(False)
    places = np.arange(n)
    return solve(library, v[..., 0, :][..., n - 1 + places - places[:, None]], b)


def _spectrum(xp: Any, c: Any) -> Any:
    return xp.fft.fft(c[..., 0, :], axis=-1)[..., None]


def _inverted(xp: Any, f: Any, dtype: Any) -> Any:
    out = xp.fft.ifft(f, axis=-2)
    return (out if dtype.kind == "c" else out.real).astype(dtype)


def circulant_solve(library: Any, c: Any, b: Any) -> Any:
    """Solution by Fourier transforms."""
    xp = library("numpy")
    if 0 in b.shape:
        return b, xp.asarray(False)
    values = _spectrum(xp, c)
    size = xp.abs(values)[..., 0]
    eps = float(np.finfo(b.dtype).eps)
    small = size <= c.shape[-1] * eps * size.max(axis=-1, keepdims=True)
    return _inverted(xp, xp.fft.fft(b, axis=-2) / values, b.dtype), small.any() | not_finite(xp, c)


def circulant_product(library: Any, c: Any, x: Any) -> Any:
    """Products by Fourier transforms."""
    xp = library("numpy")
    return x if 0 in x.shape else _inverted(xp, xp.fft.fft(x, axis=-2) * _spectrum(xp, c), x.dtype)


def sparse_product(library: Any, data: Any, x: Any, rows: Any, columns: Any, *, height: int) -> Any:
    """Each row is the sum of its entries times rows of x."""
    xp = library("numpy")
    terms = data.reshape(-1, *(1,) * (x.ndim - 1)) * x[columns]
    return xp.zeros((height, *x.shape[1:]), x.dtype).at[rows].add(terms, indices_are_sorted=True)


def sparse_sampled(library: Any, y: Any, x: Any, rows: Any, columns: Any) -> Any:
    """Entries of ``y @ x.T`` at rows and columns."""
    terms = y[rows] * x[columns]
    return terms if terms.ndim == 1 else terms.sum(axis=1)
