"""Structural kernels of large operands, native copies inside, against the reference kernels."""

from typing import Any

import numpy as np
import pytest

from kernel_check import spec_of
from tenferro_cpu.native.codegen.machine import _jit
from tenferro_cpu.native.copying import _movement
from tenferro_tensor import catalog as c
from tenferro_tensor import get_backend
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import DTYPES

REFERENCE = kernels(np, lambda: None)
native = pytest.mark.skipif(not _jit.available(), reason="needs machine code")
rng = np.random.default_rng(0)


def both(primitive: Any, *arrays: Any, **params: Any) -> tuple[Any, Any]:
    """Results of the CPU backend and of the reference."""
    ins = tuple(map(spec_of, arrays))
    op = primitive.op(**params)
    out = op.infer(*ins)
    run = get_backend("cpu").kernel(op, ins, (out,), out.place.device)
    actual, expected = run(*arrays), REFERENCE[primitive](ins, (out,), **params)(*arrays)
    assert actual.shape == expected.shape == out.shape and actual.dtype == expected.dtype == out.dtype
    np.testing.assert_array_equal(run(*arrays), actual)  # the second call takes the remembered way
    return actual, expected


def sample(dtype: Any, *shape: int, below: int = 90) -> Any:
    kind = np.dtype(dtype).kind
    x = rng.integers(0, 2 if kind == "b" else below, shape)
    return (x + 1j * rng.integers(0, below, shape) if kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", [d.name for d in DTYPES])
def test_reshape_of_a_transposed_array(dtype: str) -> None:
    x = sample(dtype, 40, 50, 30).transpose(2, 0, 1)
    actual, expected = both(c.reshape, x, shape=(1200, 50))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("shape", [(60000,), (2,) * 5 + (1875,), (30, 1, 40, 50), (1, 60000)])
def test_reshape_to_every_rank(shape: Any) -> None:
    for x in (sample("float64", 30, 40, 50), sample("float64", 50, 40, 30).T, sample("float64", 60, 80, 50)[::2, ::2]):
        actual, expected = both(c.reshape, x, shape=shape)
        np.testing.assert_array_equal(actual, expected)


@native
def test_reshape_stays_a_view_where_it_can() -> None:
    x = sample("float64", 60, 40, 50)
    for seen in (x, x[::2], x[:, :20]):
        actual, _ = both(c.reshape, seen, shape=(seen.shape[0], 2, seen.shape[1] // 2, 50))
        assert np.shares_memory(actual, x)


def test_the_table_of_layouts_is_bounded() -> None:
    run = _movement.arranged((300, 20))
    x = sample("float64", 400, 80, 30)
    for step in range(1, 2 * _movement.MAX_LAYOUTS + 1):
        seen = np.lib.stride_tricks.as_strided(x, (20, 300), (8, 8 * step))
        np.testing.assert_array_equal(run(seen), seen.reshape(300, 20))
    views = next(cell.cell_contents for cell in run.__closure__ or () if isinstance(cell.cell_contents, dict))
    assert 0 < len(views) <= _movement.MAX_LAYOUTS


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "bool"])
def test_concatenate(axis: int, dtype: str) -> None:
    shapes = [[30, 40, 50] for _ in range(3)]
    for shape, n in zip(shapes, (50, 3, 0)):
        shape[axis] = n
    xs = [sample(dtype, *shape[::-1]).T for shape in shapes]
    actual, expected = both(c.concatenate, *xs, axis=axis)
    np.testing.assert_array_equal(actual, expected)
    actual, expected = both(c.concatenate, xs[0].copy(), xs[1], xs[0][...], axis=axis)
    np.testing.assert_array_equal(actual, expected)


PRODUCTS = [
    ((20, 30, 40), (40, 50, 20), ((0, 2), (2, 0)), ((), ())),
    ((20, 30, 40), (40, 50, 20), ((2, 0), (0, 2)), ((), ())),
    ((16, 20, 8, 30), (8, 30, 16, 12), ((3,), (1,)), ((0, 2), (2, 0))),
    ((16, 20, 30), (16, 30), ((2,), (1,)), ((0,), (0,))),
    ((20, 16, 30), (30, 16), ((2,), (0,)), ((1,), (1,))),
    ((60, 70), (70, 80), ((1,), (0,)), ((), ())),
    ((60, 70), (60,), ((0,), (0,)), ((), ())),
    ((60, 70, 5), (60, 5), ((0, 2), (0, 1)), ((), ())),
    ((60, 70), (60, 70), ((0, 1), (0, 1)), ((), ())),
    ((2,) * 13, (2,) * 6, ((1, 5, 9, 12), (0, 2, 4, 5)), ((), ())),
    ((2,) * 13, (2,) * 12, ((1, 5, 9), (0, 2, 4)), ((0, 7, 3), (1, 3, 11))),
    ((0, 100, 50), (50, 100), ((2,), (0,)), ((), ())),
    ((60, 80), (60,), ((), ()), ((), ())),
]


@pytest.mark.parametrize(("left", "right", "contract", "batch"), PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
def test_products(left: Any, right: Any, contract: Any, batch: Any, dtype: str) -> None:
    """Integers of this size are exact in every dtype, whatever the order of the sum."""
    x, y = sample(dtype, *left, below=5), sample(dtype, *right, below=5)
    for seen in (x, np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0), np.concatenate([x, x], -1)[..., : left[-1]]):
        actual, expected = both(c.dot_general, seen, y, contract=contract, batch=batch)
        np.testing.assert_array_equal(actual, expected)
        other = np.moveaxis(np.moveaxis(y, -1, 0).copy(), 0, -1)
        actual, _ = both(c.dot_general, seen, other, contract=contract, batch=batch)
        np.testing.assert_array_equal(actual, expected)


def test_random_products() -> None:
    """Axes in any order, strides in any order."""
    for _ in range(60):
        sizes = [int(n) for n in rng.choice([1, 2, 3, 5, 8], 8)]
        b, k, m, n = [[f"{letter}{i}" for i in range(int(rng.integers(0, 3)))] for letter in "bkmn"]
        extent = dict(zip([*b, *k, *m, *n], sizes))
        left, right = [list(rng.permutation(names)) if names else [] for names in (b + k + m, b + k + n)]
        contract = ([left.index(i) for i in k], [right.index(i) for i in k])
        batch = ([left.index(i) for i in b], [right.index(i) for i in b])
        x, y = (sample("float64", *[extent[i] for i in names], below=7) for names in (left, right))
        params = {"contract": tuple(map(tuple, contract)), "batch": tuple(map(tuple, batch))}
        x = x.transpose(order := rng.permutation(x.ndim)).copy().transpose(np.argsort(order)) if x.ndim else x
        actual, expected = both(c.dot_general, x, y, **params)
        np.testing.assert_array_equal(actual, expected)


def test_products_of_strided_stacks_are_packed() -> None:
    """A stack whose matrices BLAS cannot read in place."""
    x = sample("float64", 64, 64, 20, below=7).transpose(2, 0, 1)
    params: Any = {"contract": ((2,), (1,)), "batch": ((0,), (0,))}
    actual, expected = both(c.dot_general, x, x, **params)
    np.testing.assert_array_equal(actual, expected)
