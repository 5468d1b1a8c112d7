"""Colorings: what they promise on random patterns, and the number of colors of stencils."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from tenferro_ad.sparse._coloring import color_columns, row_numbers
from tenferro_ad.sparse._star import color_symmetric, positions


def pattern_of(dense: np.ndarray[Any, Any]) -> Any:
    return scipy.sparse.csr_array(dense.astype(bool))


@st.composite
def patterns(draw: Any) -> np.ndarray[Any, Any]:
    rows, columns = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    found: np.ndarray[Any, Any] = rng.random((rows, columns)) < draw(st.floats(0, 0.6))
    return found


@given(dense=patterns())
def test_columns_of_one_color_share_no_row(dense: np.ndarray[Any, Any]) -> None:
    colors, number = color_columns(pattern_of(dense))
    for c in range(number):
        assert dense[:, colors == c].sum(axis=1).max(initial=0) <= 1
    assert number <= dense.shape[1]


@given(dense=patterns(), diagonal=st.booleans())
def test_symmetric_coloring_gives_each_entry(dense: np.ndarray[Any, Any], diagonal: bool) -> None:
    """The entries of a random symmetric matrix are read off its products with one seed for each color."""
    n = min(dense.shape)
    mask = dense[:n, :n] | dense[:n, :n].T
    np.fill_diagonal(mask, diagonal)
    pattern = pattern_of(mask)
    colors, number = coloring = color_symmetric(pattern)
    turned = positions(pattern, coloring)
    assert turned is not None
    values = np.random.default_rng(0).normal(size=(n, n))
    matrix = np.where(mask, values + values.T, 0)
    products = matrix @ (colors[:, None] == np.arange(number)).astype(float)
    rows, columns = row_numbers(pattern), pattern.indices
    read, by = np.where(turned, columns, rows), np.where(turned, rows, columns)
    np.testing.assert_array_equal(products[read, colors[by]], matrix[rows, columns])


@given(dense=patterns())
def test_star_coloring(dense: np.ndarray[Any, Any]) -> None:
    """With a full diagonal neighbors differ in color, and four vertices in a row have at least three."""
    n = min(dense.shape)
    mask = dense[:n, :n] | dense[:n, :n].T | np.eye(n, dtype=bool)
    colors = color_symmetric(pattern_of(mask)).colors
    edges = [(i, j) for i, j in zip(*mask.nonzero(), strict=True) if i != j]
    assert all(colors[i] != colors[j] for i, j in edges)
    for b, c in edges:
        for a in (i for i, j in edges if j == b and i != c):
            assert not any(
                colors[a] == colors[c] and colors[b] == colors[d] for i, d in edges if i == c and d not in (a, b)
            )


def grid(n: int, m: int, offsets: list[tuple[int, int]]) -> Any:
    """The pattern of a stencil on a grid."""
    i, j = np.divmod(np.arange(n * m), m)
    rows, columns = [], []
    for a, b in offsets:
        inside = (i + a >= 0) & (i + a < n) & (j + b >= 0) & (j + b < m)
        rows.append(np.flatnonzero(inside))
        columns.append(((i + a) * m + j + b)[inside])
    ones = np.ones(sum(map(len, rows)), bool)
    return scipy.sparse.csr_array((ones, (np.concatenate(rows), np.concatenate(columns))), shape=(n * m, n * m))


FIVE = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]
NINE = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]


@pytest.mark.parametrize(("offsets", "number"), [(FIVE, 5), (NINE, 9), ([(0, 0), (2, 3)], 2)])
def test_stencils_take_as_many_colors_as_they_have_points(offsets: list[tuple[int, int]], number: int) -> None:
    assert color_columns(grid(20, 33, offsets), [(20, 33)]).number == number


@pytest.mark.parametrize(("offsets", "number"), [(FIVE, 5), (NINE, 9)])
def test_star_coloring_of_stencils(offsets: list[tuple[int, int]], number: int) -> None:
    assert color_symmetric(grid(20, 33, offsets), [(20, 33)]).number <= number


def test_band() -> None:
    band = scipy.sparse.diags_array([np.ones(500)] * 7, offsets=range(-3, 4), shape=(500, 500)).tocsr()
    assert color_columns(band.astype(bool)).number == 7
    assert color_symmetric(band.astype(bool)).number == 7
