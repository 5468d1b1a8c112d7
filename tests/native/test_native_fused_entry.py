"""Entries of fused kernels: what they take in machine code, what they hand on, and that nothing leaks."""

import gc
import sys
import threading

import numpy as np
import pytest

from tenferro_cpu.native import available
from tenferro_runtime.rendering._background import COMPILING
from tenferro_tensor.catalog import analytic, arithmetic
from tenferro_tensor.device_model import Apply, KernelIR, Operand, Reduction, Region
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

    return Reduced(kernel(Reduction("sum"))).rows()


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


def spread(kinds, reduction=None, reduced=(), outputs=(4,)):
    """``exp(a) * b + c`` over three axes; the letters say along which axes each operand lies."""
    from tenferro_cpu.native.regions._region import fused as build

    lines = (
        Apply(analytic.exp.op(), (0,)),
        Apply(arithmetic.mul.op(), (3, 1)),
        Apply(arithmetic.add.op(), (4, 2)),
    )
    kernel = KernelIR((F8,) * 3, lines, (5,) if outputs == (4,) else outputs, reduction=reduction)
    return build(Region(kernel, 3, kinds, reduced), lambda *xs: "fallback", lambda job: None)


EVERY = (0, 1, 2)


def operand(axes, shape):
    x = np.random.default_rng(len(axes)).standard_normal(tuple(shape[a] for a in axes))
    wide = x.reshape(tuple(shape[a] if a in axes else 1 for a in range(3)))
    return x, wide


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (0, 2, 3), (2, 0, 3), (3, 2, 0), (40, 50, 60)])
@pytest.mark.parametrize(
    "kinds",
    [(EVERY, EVERY, EVERY), (EVERY, (2,), ()), ((1, 2), EVERY, (0,)), ((), EVERY, (0, 1)), (EVERY, (2,), (0, 1))],
)
@pytest.mark.parametrize("reduced", [(), (2,), (1, 2), (0, 1), (0,), (0, 1, 2), (1,)])
def test_rows_columns_and_numbers(shape, kinds, reduced, monkeypatch):
    monkeypatch.setattr("tenferro_cpu.native.regions._region.SMALL", -1)
    run = spread(kinds, Reduction("sum") if reduced else None, reduced)
    (a, wa), (b, wb), (c, wc) = (operand(axes, shape) for axes in kinds)
    expected = np.broadcast_to(np.exp(wa) * wb + wc, shape)
    expected = expected.sum(reduced) if reduced else expected
    for _ in range(2):
        got = run(a, b, c[()] if c.ndim == 0 else c)
        if not isinstance(got, str):
            assert np.shape(got) == expected.shape
            np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)


def test_several_results():
    run = spread((EVERY, (2,), (0, 1)), outputs=(3, 5))
    (a, wa), (b, wb), (c, wc) = (operand(axes, (2, 3, 4)) for axes in (EVERY, (2,), (0, 1)))
    COMPILING.drain()
    gc.collect()
    before = [sys.getrefcount(o) for o in (a, b, c, a.dtype)]
    for _ in range(10_000):
        first, second = run(a, b, c)
    np.testing.assert_allclose(first, np.exp(wa), rtol=1e-14)
    np.testing.assert_allclose(second, np.exp(wa) * wb + wc, rtol=1e-14)
    del first, second
    gc.collect()
    assert [sys.getrefcount(o) for o in (a, b, c, a.dtype)] == before
    for wrong in ((a, b), (a, b, c[0]), (a, b, "x"), (a[:, ::-1], b, c), (a, b.astype("float32"), c)):
        try:
            assert isinstance(run(*wrong), (str, tuple))
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            assert str(error)
