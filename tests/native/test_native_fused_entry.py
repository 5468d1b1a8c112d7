"""Entries of kernels of rows: what they take in machine code, what they hand on, and that nothing leaks."""

import gc
import sys
import threading

import numpy as np
import pytest

from reduced_entries import by_rows
from runtime_rooms import COMPILING
from tenferro_cpu.native import available
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor_core import ArgumentError, DTypeError

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8 = np.dtype("float64")


@pytest.fixture(scope="module")
def product():
    from tenferro_cpu.native.kernels._elementwise import Elementwise

    return Elementwise(arithmetic.mul.op(), (F8, F8)).entry()


@pytest.fixture(scope="module")
def rows():
    from native_rooms import Reduced

    return by_rows(Reduced("sum", F8))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5), (2, 0, 4), (40_000,), (200_001,)])
def test_contiguous_operands(product, shape):
    x, y = np.random.default_rng(0).standard_normal((2, *shape))
    got = product(np.asarray(x), np.asarray(y))
    assert got.shape == shape and got.flags.owndata
    np.testing.assert_allclose(got, x * y, rtol=1e-14)


@pytest.mark.parametrize(
    "shape", [(24,), (100,), (3, 50), (2, 3, 31), (5, 4), (0, 30), (5, 0), (30_000, 2), (2, 40_000)]
)
def test_rows_become_elements(rows, shape):
    x = np.random.default_rng(1).random(shape)
    got = np.asarray(rows(x))
    assert got.shape == shape[:-1]
    np.testing.assert_allclose(got, x.sum(-1), rtol=1e-11)


def test_everything_else_goes_the_long_way(product):
    x = np.random.default_rng(2).standard_normal((6, 8))
    for other in (x[0], x[:, :1], x[::-1, ::-1], np.array(2.0), np.asfortranarray(x)):
        np.testing.assert_allclose(product(x, other), x * other, rtol=1e-14)
    with pytest.raises(DTypeError, match="operand 1 of the kernel is int64"):
        product(x, x.astype("int64"))
    with pytest.raises(ArgumentError, match="takes 2 array"):
        product(x)
    for wrong in (None, "x", [1.0, None], object()):
        with pytest.raises((DTypeError, TypeError, ValueError)):
            product(x, wrong)


def test_nothing_leaks(product, rows):
    x, y = np.random.default_rng(3).standard_normal((2, 60))
    COMPILING.drain()
    gc.collect()  # what earlier tests left behind also holds the dtype
    before = [sys.getrefcount(o) for o in (x, y, x.dtype, product, rows)]
    for _ in range(5000):
        product(x, y)
    for _ in range(1000):
        rows(x)
    gc.collect()
    after = [sys.getrefcount(o) for o in (x, y, x.dtype, product, rows)]
    assert [b - a for a, b in zip(before, after)] == [0] * 5


def test_long_operands_leave_the_interpreter_free(product):
    x, y = np.random.default_rng(4).standard_normal((2, 100_000))
    expected, wrong = x * y, []

    def work():
        wrong.extend(1 for _ in range(20) if not np.allclose(product(x, y), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
