"""Entries of fused kernels: what they take in machine code, what they hand on, and that nothing leaks."""

import gc
import sys
import threading

import numpy as np
import pytest

from reduced_entries import by_rows
from tenferro_cpu.native import available
from tenferro_runtime.rendering._background import COMPILING
from tenferro_tensor.catalog import analytic, arithmetic
from tenferro_tensor.device_model import Apply, KernelIR, Operand, Reduction
from tenferro_tensor_core import ArgumentError, DTypeError

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8 = Operand(np.dtype("float64"))


def kernel(reduction=None):
    lines = (Apply(analytic.exp.op(), (0,)), Apply(arithmetic.mul.op(), (2, 1)))
    return KernelIR((F8, F8), lines, (3,), reduction=reduction)


@pytest.fixture(scope="module")
def fused():
    from tenferro_cpu.native.kernels._elementwise import Fused

    return Fused(kernel()).entry()


@pytest.fixture(scope="module")
def rows():
    from tenferro_cpu.native.kernels._reduce import Reduced

    return by_rows(Reduced(kernel(Reduction("sum"))))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5), (2, 0, 4), (40_000,), (200_001,)])
def test_contiguous_operands(fused, shape):
    x, y = np.random.default_rng(0).standard_normal((2, *shape))
    got = fused(np.asarray(x), np.asarray(y))
    assert got.shape == shape and got.flags.owndata
    np.testing.assert_allclose(got, np.exp(x) * y, rtol=1e-14)


@pytest.mark.parametrize(
    "shape", [(24,), (100,), (3, 50), (2, 3, 31), (5, 4), (0, 30), (5, 0), (30_000, 2), (2, 40_000)]
)
def test_rows_become_elements(rows, shape):
    x, y = np.random.default_rng(1).standard_normal((2, *shape))
    got = np.asarray(rows(x, y))
    assert got.shape == shape[:-1]
    np.testing.assert_allclose(got, (np.exp(x) * y).sum(-1), rtol=1e-11)


def test_everything_else_goes_the_long_way(fused):
    x = np.random.default_rng(2).standard_normal((6, 8))
    for other in (x[0], x[:, :1], x[::-1, ::-1], np.array(2.0), np.asfortranarray(x)):
        np.testing.assert_allclose(fused(x, other), np.exp(x) * other, rtol=1e-14)
    with pytest.raises(DTypeError, match="operand 1 of the kernel is int64"):
        fused(x, x.astype("int64"))
    with pytest.raises(ArgumentError, match="takes 2 array"):
        fused(x)
    for wrong in (None, "x", [1.0, None], object()):
        with pytest.raises((DTypeError, TypeError, ValueError)):
            fused(x, wrong)


def test_nothing_leaks(fused, rows):
    x, y = np.random.default_rng(3).standard_normal((2, 60))
    COMPILING.drain()
    gc.collect()  # what earlier tests left behind also holds the dtype
    before = [sys.getrefcount(o) for o in (x, y, x.dtype, fused, rows)]
    for _ in range(100_000):
        fused(x, y)
    for _ in range(10_000):
        rows(x, y)
    gc.collect()
    after = [sys.getrefcount(o) for o in (x, y, x.dtype, fused, rows)]
    assert [b - a for a, b in zip(before, after)] == [0] * 5


def test_long_operands_leave_the_interpreter_free(fused):
    x, y = np.random.default_rng(4).standard_normal((2, 100_000))
    expected, wrong = np.exp(x) * y, []

    def work():
        wrong.extend(1 for _ in range(20) if not np.allclose(fused(x, y), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
