"""Rows that are combined in machine code: many, wide, of several results, with the same bits in any team."""

import gc
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenferro_cpu import threads
from tenferro_cpu.native import available
from tenferro_cpu.native.kernels._limits import COMBINED_ROWS
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_cpu.native.regions import _region
from tenferro_runtime.rendering._background import COMPILING
from tenferro_tensor.catalog import add, exp, mul
from tenferro_tensor.device_model import Apply, KernelIR, Operand, Reduction, Region

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8, F4 = Operand(np.dtype("float64")), Operand(np.dtype("float32"))
ROWS = [1, 2, COMBINED_ROWS - 1, COMBINED_ROWS, COMBINED_ROWS + 1, 2 * COMBINED_ROWS, 3 * COMBINED_ROWS + 5, 9000]
WIDTHS = [1, 3, 8, 64, 511, 513, 1100]


def refused(*_):
    raise AssertionError("handed to the fallback")


def region(kind, operand=F8, outputs=(4,)):
    """``exp(x) * row + column``, and with a second result ``exp(x)``, combined over the first axis."""
    lines = (Apply(exp.op(), (0,)), Apply(mul.op(), (3, 1)), Apply(add.op(), (4, 2)))
    kernel = KernelIR((operand,) * 3, lines, outputs, reduction=Reduction(kind))
    return Region(kernel, 2, ((0, 1), (1,), (0,)), (0,))


def operands(n, m, dtype="f8"):
    rng = np.random.default_rng(n * 7 + m)
    return [rng.standard_normal(shape).astype(dtype) for shape in ((n, m), (m,), (n,))]


@pytest.fixture(scope="module")
def runs():
    return {
        kind: (_region.fused(region(kind, outputs=out), refused, refused), Reduced(region(kind, outputs=out).kernel))
        for kind, out in (("sum", (5,)), ("max", (5,)), ("prod", (3,)), ("min", (5, 3)))
    }


def agree(runs, kind, n, m, team):
    x, row, column = operands(n, m)
    run, long_way = runs[kind]
    wanted = long_way(x, row, column[:, None], axes=(0,))
    with threads(1):
        alone = run(x, row, column)
    with threads(team):
        found = run(x, row, column)
    every = [v if isinstance(v, tuple) else (v,) for v in (found, alone, wanted)]
    for got, one, want in zip(*every, strict=True):
        np.testing.assert_array_equal(got, one, strict=True)
        if m > 3:  # narrow rows may be read along their columns
            np.testing.assert_array_equal(got, want, strict=True)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(["sum", "max", "prod", "min"]), n=st.sampled_from(ROWS), m=st.sampled_from(WIDTHS),
       team=st.sampled_from([1, 2, 3]))  # fmt: skip
@example("sum", 9000, 1100, 3)
@example("sum", 40, 60_000, 3)
@example("min", 9000, 513, 2)
@example("sum", 9001, 2, 2)
def test_the_long_way_and_any_team(runs, kind, n, m, team):
    agree(runs, kind, n, m, team)


def test_values(runs):
    x, row, column = operands(3 * COMBINED_ROWS + 5, 70)
    full = np.exp(x) * row + column[:, None]
    np.testing.assert_allclose(runs["sum"][0](x, row, column), full.sum(0), rtol=1e-12)
    np.testing.assert_allclose(runs["max"][0](x, row, column), full.max(0), rtol=1e-13)


def test_nothing_to_combine_goes_elsewhere():
    calls = []

    def fallback(*args):
        calls.append(args)
        return "other"

    run = _region.fused(region("max", outputs=(5,)), fallback, refused)
    assert run(*operands(0, 4)) == "other"
    found = run(*operands(COMBINED_ROWS + 1, 0))
    assert found.shape == (0,)
    x, row, column = operands(COMBINED_ROWS + 1, 3)
    assert run(x[:, ::-1], row, column) == "other"
    assert run(x, row, column[1:]) == "other"
    assert len(calls) == 3


def test_numbers_of_four_bytes():
    run = _region.fused(region("sum", F4, (5,)), refused, refused)
    x, row, column = operands(2 * COMBINED_ROWS + 3, 40, "f4")
    wanted = (np.exp(x.astype("f8")) * row + column[:, None]).sum(0)
    found = run(x, row, column)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


def test_partial_results_are_given_back(runs):
    run, args = runs["min"][0], operands(COMBINED_ROWS + 9, 5)
    run(*args)
    COMPILING.drain()
    gc.collect()
    before, blocks = sys.getrefcount(F8.dtype), sys.getallocatedblocks()
    for _ in range(3000):
        run(*args)
    gc.collect()
    assert abs(sys.getrefcount(F8.dtype) - before) < 10
    assert sys.getallocatedblocks() - blocks < 300
