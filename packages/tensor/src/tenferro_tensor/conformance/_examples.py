"""Examples of every core operation, on arrays of any shape and dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._host_kernel import has_host_kernel
from tenferro_tensor._place import Place
from tenferro_tensor._primitive import Op, Primitive, primitives
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor.catalog.indexing import SCATTER_MODES
from tenferro_tensor_core import DTYPES, DType, kind_of

Elements = np.ndarray[Any, Any]

SHAPES: Final = ((3, 4), (), (1, 1), (0, 4), (3, 0), (5,))

CONVERSIONS: Final = tuple(
    [d for d in DTYPES if d.name in ("bool", "int32", "int64", "uint8", "float32", "complex128")]
)

_METADATA: Final[dict[Primitive, list[dict[str, Any]]]] = {
    catalog.polygamma: [{"order": 0}, {"order": 2}],
    catalog.convert: [{"dtype": d} for d in DTYPES if d.name in ("bool", "int32", "uint8", "float32", "complex128")],
}
"""Metadata of element-wise primitives that have some."""


class Example(NamedTuple):
    """An op and its operands.

    Attributes:
        op: the op.
        arrays: elements of the operands.
    """

    op: Op
    arrays: tuple[Elements, ...]


def examples(shape: tuple[int, ...], dtype: DType, place: Place) -> Iterator[Example]:
    """All examples on arrays of a shape and dtype; inference may refuse some.

    Args:
        shape: shape of the operands.
        dtype: their dtype.
        place: where results are, for operations without operands.

    Yields:
        The examples.
    """
    for primitive in elementwise():
        arrays = tuple([_operand(primitive, i, shape, dtype) for i in range(len(primitive.operands))])
        for params in _METADATA.get(primitive, [{}]):
            yield Example(primitive.op(**params), arrays)
    x = numbers(shape, dtype, -1.5, 2.5)
    for primitive, params, more in _of_one(x, place):
        yield Example(primitive.op(**params), tuple(map(np.asarray, more)))


def special_examples(dtype: DType) -> Iterator[Example]:
    """Examples on NaN, infinities and zeros of both signs in all pairs, where IEEE 754 and NumPy define the results.

    Args:
        dtype: a floating dtype.

    Yields:
        The examples.
    """
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5], dtype)
    pairs = np.meshgrid(values, values, indexing="ij")
    for primitive in elementwise():
        if primitive not in _METADATA and primitive.extension is None:
            arrays = [pairs[i % 2] for i in range(len(primitive.operands))]
            if primitive.chooser is not None:
                arrays[primitive.chooser] = np.signbit(pairs[0] + pairs[1])
            yield Example(primitive.op(), tuple(arrays))
    for primitive in (catalog.reduce_max, catalog.reduce_min):
        yield Example(primitive.op(axes=(1,)), (np.triu(pairs[0]),))
    for primitive in (catalog.cummax, catalog.cummin):
        yield Example(primitive.op(axis=1, reverse=False), (np.triu(pairs[0]),))
    for primitive in (catalog.argmax, catalog.argmin):
        yield Example(primitive.op(axis=0), (pairs[0][:, ::-1],))
    yield Example(catalog.sort.op(axis=0, descending=False), (pairs[0],))


def elementwise() -> list[Primitive]:
    """The element-wise primitives of tenferro, those of loaded families included.

    Operations that are written with others are left out: their kernels are those of the others.
    """
    return [
        p for p in primitives()
        if p.elementwise and p.in_house and REGISTRY.find("expansion", p) is None
        and (p in _METADATA or (not p.metadata and has_host_kernel(p.op())))
    ]  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: DType, low: float, high: float) -> Elements:
    """Different numbers between two limits in no order, as a dtype holds them."""
    count = math.prod(shape)
    x = np.linspace(low, high, count or 1)[: count or 0]
    x = np.concatenate([x[1::2], x[::2][::-1]]).reshape(shape)
    kind = kind_of(dtype)
    if kind == "b":
        return np.asarray(x * 3 % 2 > 1)
    if kind == "c":
        return np.asarray(x + 0.25j * x[..., ::-1] if x.ndim else x + 0.25j, dtype)
    if kind == "f":
        return np.asarray(x, dtype)
    x = np.round(2 * x)
    return np.asarray(np.abs(x) if kind == "u" else x).astype(dtype)


def _operand(primitive: Primitive, position: int, shape: tuple[int, ...], dtype: DType) -> Elements:
    """Numbers where an element-wise primitive is defined, and for which integers have a result."""
    if position == primitive.chooser:
        return numbers(shape, np.dtype(bool), -1.5, 2.5)
    if primitive.domain in ("inexact", "floating") and kind_of(dtype) in "fc":
        return numbers(shape, dtype, 0.1 + 0.05 * position, 0.9)
    if position or primitive is catalog.convert:
        return numbers(shape, dtype, 0.5, 2.0 + position)
    return numbers(shape, dtype, -1.5, 2.5)


def _of_one(x: Elements, place: Place) -> Iterator[tuple[Primitive, dict[str, Any], tuple[Elements, ...]]]:
    """Examples of operations that are not element-wise, on one array and parts of it."""
    n, axes = x.ndim, tuple(range(x.ndim))
    yield catalog.broadcast_in_dim, {"shape": (2, *x.shape, 3), "dims": tuple([i + 1 for i in axes])}, (x,)
    yield catalog.reshape, {"shape": (1, x.size)}, (x,)
    yield catalog.reshape, {"shape": x.shape[::-1]}, (x,)
    yield catalog.transpose, {"permutation": axes[::-1]}, (x,)
    yield catalog.iota, {"shape": (2, *x.shape), "dtype": x.dtype, "axis": n, "place": place}, ()
    yield catalog.dim_value, {"size": 7, "place": place}, ()
    yield catalog.define_size, {"size": 3}, (np.array(3),)
    yield catalog.transfer, {"place": place}, (x,)
    outer: Any = ((), ())
    yield catalog.dot_general, {"contract": outer, "batch": outer}, (x, x)
    for reduce in (catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min,
                   catalog.reduce_all, catalog.reduce_any):  # fmt: skip
        for chosen in {axes, axes[:1], axes[1:]}:
            yield reduce, {"axes": chosen}, (x,)
    starts = (np.array(1),) * n
    block = tuple([min(2, extent) for extent in x.shape])
    part = x[tuple(map(slice, block))]
    yield catalog.dynamic_slice, {"sizes": block}, (x, *starts)
    yield catalog.dynamic_update_slice, {}, (x, part, *starts)
    if not n:
        return
    for axis in {0, n - 1}:
        yield from _along(x, axis)
    yield catalog.reverse, {"axes": axes}, (x,)
    yield catalog.pad, {"low": (1,) * n, "high": (2,) * n, "interior": (1,) * n}, (x, x.sum().astype(x.dtype))
    yield catalog.pad, {"low": (2,) * n, "high": (-1,) * n, "interior": (0,) * n}, (x, np.zeros((), x.dtype))
    start = tuple([min(1, extent) for extent in x.shape])
    yield catalog.slice_, {"start": start, "limit": x.shape, "stride": (2,) * n}, (x,)
    every_second = x[tuple([slice(first, None, 2) for first in start])]
    for mode in ("set", "add"):
        yield catalog.update_slice, {"start": start, "stride": (2,) * n, "mode": mode}, (x, every_second[::-1].copy())
    contract: Any = ((n - 1,), (n - 1,))
    yield catalog.dot_general, {"contract": contract, "batch": outer}, (x, x)
    if n == 2:
        yield catalog.dot_general, {"contract": contract, "batch": ((0,), (0,))}, (x, x)
    yield from _at_indices(x)


def _along(x: Elements, axis: int) -> Iterator[tuple[Primitive, dict[str, Any], tuple[Elements, ...]]]:
    yield catalog.argmax, {"axis": axis}, (x,)
    yield catalog.argmin, {"axis": axis}, (x,)
    yield catalog.concatenate, {"axis": axis}, (x, x[::-1], x)
    for flag in (False, True):
        for scan in (catalog.cumsum, catalog.cumprod, catalog.cummax, catalog.cummin, catalog.cumlogsumexp):
            yield scan, {"axis": axis, "reverse": flag}, (x,)
        for sort in (catalog.sort, catalog.argsort):
            yield sort, {"axis": axis, "descending": flag}, (x,)
    line = np.sort(x.reshape(-1))
    for side in ("left", "right"):
        yield catalog.searchsorted, {"side": side}, (line, x)


def _at_indices(x: Elements) -> Iterator[tuple[Primitive, dict[str, Any], tuple[Elements, ...]]]:
    """Rows at indices, one of which is beyond the end and one of which comes twice."""
    rows, last = np.array([[1], [0], [99], [1]]), x.ndim - 1
    window = tuple(range(1, x.ndim))
    gathered = {
        "offset_dims": window,
        "collapsed_dims": (0,),
        "start_index_map": (0,),
        "slice_sizes": (1, *x.shape[1:]),
    }
    yield catalog.gather, gathered, (x, rows)
    updates = np.stack([x[:1].sum(axis=0).astype(x.dtype)] * 4) if last else np.resize(x, 4).astype(x.dtype)
    for mode in SCATTER_MODES:
        at, new = (rows[:3], updates[:3]) if mode == "set" else (rows, updates)
        scattered = {"update_window_dims": window, "inserted_dims": (0,), "scatter_dims": (0,), "mode": mode}
        yield catalog.scatter, scattered, (x, at, new)
