"""Sums of products of a sparse matrix and an array over labelled axes.

A sum over one label of the matrix, whose other label the array lacks, is a matrix product. Otherwise the array is read
at the positions of the entries: with entries a_e at (i_e, j_e), the result is the sum of a_e x[i_e, j_e, ...] over e,
added up by row, by column or by position where these labels remain.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Any

import tenferro_runtime as tr
from tenferro_linalg._operands import common, inexact, show
from tenferro_linalg.sparse._structure import beside, device_of
from tenferro_tensor.catalog import reshape
from tenferro_tensor.contractible import Labels
from tenferro_tensor_core import require_equal


def contract(a: Any, labels: Labels, x: Any, of_x: Labels, out: Labels) -> Any:
    """The dense sum of products of the `SparseArray` `a`, with two labels, and an array with different labels."""
    x = inexact(x)
    row, column = labels
    for label, extent in zip(labels, a.shape, strict=True):
        seen = x.shape[of_x.index(label)] if label in of_x else extent
        if seen is not extent and seen != extent:
            require_equal(seen, extent, f"a {a!r} does not fit the array of shape {show(x.spec.shape)}")
    unused = [n for n, label in enumerate(of_x) if label not in out and label not in labels]
    if unused:
        x, of_x = tr.sum(x, axis=tuple(unused)), tuple([y for n, y in enumerate(of_x) if n not in unused])
    if row == column:
        require_equal(a.shape[0], a.shape[1], f"the axes of a {a!r} cannot share the label {row!r}")
        return _on_diagonal(a.diagonal(), row, x, of_x, out)
    for matrix, kept, summed in ((a, row, column), (a, column, row)):
        if summed in of_x and summed not in out and kept not in of_x and kept in out:
            return _product(matrix if summed == column else matrix.T, kept, summed, x, of_x, out)
    return _by_entries(a, labels, x, of_x, out)


def _product(a: Any, row: Hashable, column: Hashable, x: Any, of_x: Labels, out: Labels) -> Any:
    free = tuple([y for y in of_x if y != column])
    x = ordered(x, of_x, (column, *free))
    if len(free) < 2:
        return ordered(a @ x, (row, *free), out)
    others = x.spec.shape[1:]
    flat = a @ reshape(x, shape=(a.shape[1], prod(others)))
    return ordered(reshape(flat, shape=(a.shape[0], *others)), (row, *free), out)


def _by_entries(a: Any, labels: Labels, x: Any, of_x: Labels, out: Labels) -> Any:
    shared = tuple([y for y in labels if y in of_x])
    free = tuple([y for y in of_x if y not in labels])
    places = dict(zip(labels, a.coords, strict=True))
    data, x = common(inexact(a.data), ordered(x, of_x, (*shared, *free)))
    x = x[beside(x, *[places[y] for y in shared])] if shared else tr.broadcast_to(x, (a.nnz, *x.shape))
    kept = tuple([y for y in labels if y in out])
    if not kept:
        return ordered(tr.tensordot(data, x, 1), free, out)
    products = tr.reshape(data, (-1, *[1] * len(free))) * x
    if not free and len(kept) == 1:
        return a.with_data(products).sum(1 - labels.index(kept[0]))
    shape = tuple([a.shape[labels.index(y)] for y in kept])
    sums = tr.zeros((*shape, *x.shape[1:]), dtype=data.dtype, device=device_of(data))
    sums = sums.at[beside(data, *[places[y] for y in kept])].add(products)
    return ordered(sums, (*kept, *free), out)


def _on_diagonal(diagonal: Any, label: Hashable, x: Any, of_x: Labels, out: Labels) -> Any:
    free = tuple([y for y in of_x if y != label])
    diagonal, x = common(diagonal, ordered(x, of_x, (label, *free) if label in of_x else free))
    if label in out:
        return ordered(tr.reshape(diagonal, (-1, *[1] * len(free))) * x, (label, *free), out)
    if label in of_x:
        return ordered(tr.tensordot(diagonal, x, 1), free, out)
    return ordered(tr.sum(diagonal) * x, free, out)


def ordered(x: Any, labels: Labels, out: Labels) -> Any:
    """Axes of `x` in the order of `out`, which has the same labels."""
    return x if labels == out else tr.permute_dims(x, tuple([labels.index(y) for y in out]))
