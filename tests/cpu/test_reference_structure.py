"""Structural, creating and moving kernels against loops that follow the definitions."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from kernel_check import agree, check, kernel_of, sample
from structural_oracles import ORACLES
from tenferro_tensor import HOST, ComputeDevice, MemorySpace, Place, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DTYPES, dim

NAMES = [dt.name for dt in DTYPES]
rng = np.random.default_rng(0)


def checked(primitive: Any, *arrays: Any, **params: Any) -> None:
    check(primitive, ORACLES[primitive], *arrays, **params)


@pytest.mark.parametrize("dtype", NAMES)
def test_every_dtype(dtype: str) -> None:
    x = sample(rng, dtype, (2, 3))
    checked(c.broadcast_in_dim, x, shape=(2, 4, 3), dims=(0, 2))
    checked(c.reshape, x, shape=(3, 2))
    checked(c.transpose, x, permutation=(1, 0))
    checked(c.pad, x, sample(rng, dtype), low=(1, -1), high=(0, 2), interior=(1, 0))
    checked(c.concatenate, x, x[:1], x[:0], axis=0)
    checked(c.reverse, x, axes=(1,))
    checked(c.slice_, x, start=(0, 1), limit=(2, 3), stride=(1, 2))
    checked(c.update_slice, x, sample(rng, dtype, (1, 2)), start=(1, 0), stride=(1, 2), mode="set")
    checked(c.update_slice, x, sample(rng, dtype, (1, 2)), start=(1, 0), stride=(1, 2), mode="add")
    checked(c.transfer, x, place=HOST)


@pytest.mark.parametrize(
    ("inner", "shape", "dims"),
    [
        ((), (), ()), ((), (2, 3), ()), ((3,), (3,), (0,)), ((3,), (2, 3), (1,)), ((3,), (3, 2), (0,)),
        ((2, 3), (3, 2), (1, 0)), ((2, 3), (3, 4, 2), (2, 0)), ((3,), (1, 3, 1), (1,)), ((2, 3), (3, 1, 2), (2, 0)),
        ((0,), (4, 0), (1,)), ((3,), (0, 3), (1,)), ((1,), (1, 5), (0,)), ((64,), (64, 64), (0,)),
        ((64, 3), (3, 50, 64), (2, 0)), ((), (50, 50), ()),
    ],
)  # fmt: skip
def test_broadcast_in_dim(inner: Any, shape: Any, dims: Any) -> None:
    """Small results are copies and large ones views; both have the same elements."""
    checked(c.broadcast_in_dim, sample(rng, "float64", inner), shape=shape, dims=dims)


@pytest.mark.parametrize(
    ("before", "after"),
    [((), (1, 1)), ((1,), ()), ((6,), (2, 3)), ((2, 3), (3, 1, 2)), ((0, 3), (2, 0)), ((2, 3), (2, 3))],
)
def test_reshape(before: Any, after: Any) -> None:
    checked(c.reshape, sample(rng, "float64", before), shape=after)


@pytest.mark.parametrize("permutation", [(), (0,), *permutations(range(3))])
def test_transpose(permutation: Any) -> None:
    checked(c.transpose, sample(rng, "float64", (2, 3, 4)[: len(permutation)]), permutation=permutation)


@pytest.mark.parametrize(
    ("n", "low", "high", "interior"),
    [
        (n, low, high, interior)
        for n, low, high, interior in product((0, 1, 3, 5), (-4, -1, 0, 2), (-3, -1, 0, 2), (0, 1, 2))
        if low + high + n + max(n - 1, 0) * interior >= 0
    ],
)
def test_pad(n: int, low: int, high: int, interior: int) -> None:
    """Cropping counts after interior padding."""
    value = sample(rng, "float64")
    checked(c.pad, sample(rng, "float64", (n,)), value, low=(low,), high=(high,), interior=(interior,))
    checked(c.pad, sample(rng, "float64", (2, n)), value, low=(1, low), high=(-1, high), interior=(0, interior))


def test_pad_without_axes() -> None:
    checked(c.pad, np.float64(2.0), np.float64(5.0), low=(), high=(), interior=())


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenate(axis: int) -> None:
    shapes = [tuple(e if k == axis else n for k, n in enumerate((2, 3, 2))) for e in (1, 0, 3)]
    checked(c.concatenate, *[sample(rng, "float64", s) for s in shapes], axis=axis)
    checked(c.concatenate, sample(rng, "float64", shapes[0]), axis=axis)


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (2, 1, 0)])
def test_reverse(axes: Any) -> None:
    checked(c.reverse, sample(rng, "float64", (2, 3, 4)), axes=axes)
    checked(c.reverse, sample(rng, "float64", (2, 0, 4)), axes=axes)


def test_reverse_without_axes() -> None:
    checked(c.reverse, np.float64(1.0), axes=())


@pytest.mark.parametrize("start", [0, 2, 5])
@pytest.mark.parametrize("limit", [2, 5])
@pytest.mark.parametrize("stride", [1, 2, 7])
def test_slice(start: int, limit: int, stride: int) -> None:
    if start <= limit:
        checked(c.slice_, sample(rng, "float64", (5, 2)), start=(start, 0), limit=(limit, 2), stride=(stride, 1))


def test_slice_without_axes() -> None:
    checked(c.slice_, np.float64(1.0), start=(), limit=(), stride=())


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize(("start", "count", "stride"), [(0, 3, 2), (1, 4, 1), (2, 2, 2), (4, 1, 7), (5, 0, 3)])
def test_update_of_a_slice(start: int, count: int, stride: int, mode: str) -> None:
    x, update = sample(rng, "float64", (5, 2)), sample(rng, "float64", (count, 1))
    before = x.copy()
    checked(c.update_slice, x, update, start=(start, 1), stride=(stride, 1), mode=mode)
    assert np.array_equal(x, before)


def test_update_of_a_slice_without_axes() -> None:
    checked(c.update_slice, np.float64(1.0), np.float64(2.0), start=(), stride=(), mode="add")


@pytest.mark.parametrize("dtype", [n for n in NAMES if n != "bool"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((4,), 0), ((2, 3), 0), ((2, 3), 1), ((0, 2), 1), ((2, 0), 1), ((300,), 0)]
)
def test_iota(dtype: str, shape: Any, axis: int) -> None:
    """Counting past the range of a small dtype wraps."""
    params = {"shape": shape, "dtype": np.dtype(dtype), "axis": axis, "place": HOST}
    kernel, out = kernel_of(c.iota, (), params)
    agree(kernel(), out, ORACLES[c.iota](**params))


def test_values_of_sizes() -> None:
    params = {"size": 7, "place": HOST}
    kernel, out = kernel_of(c.dim_value, (), params)
    agree(kernel(), out, ORACLES[c.dim_value](**params))
    checked(c.define_size, np.int32(3), size=dim("u"))


def test_transfer_within_main_memory_copies_nothing() -> None:
    x = np.ones(3)
    pool = Place(MemorySpace("host"), ComputeDevice("cpu:1"))
    kernel, out = kernel_of(c.transfer, (Spec((3,), x.dtype),), {"place": pool})
    assert kernel(x) is x
    assert out.place is pool
