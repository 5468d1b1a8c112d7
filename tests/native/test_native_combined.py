"""Rows that are combined in machine code: many, wide, with the same bits in any team."""

import gc
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from native_rooms import Reduced
from reduced_entries import by_columns
from runtime_rooms import COMPILING
from tenferro_cpu import threads
from tenferro_cpu.native import available
from tenferro_cpu.native.kernels._limits import COMBINED_ROWS

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8, F4 = np.dtype("float64"), np.dtype("float32")
ROWS = [1, 2, COMBINED_ROWS - 1, COMBINED_ROWS, COMBINED_ROWS + 1, 2 * COMBINED_ROWS, 3 * COMBINED_ROWS + 5, 9000]
WIDTHS = [1, 3, 8, 64, 511, 513, 1100]


def refused(*_):
    raise AssertionError("handed to the fallback")


def kernel(kind, dtype=F8):
    return Reduced(kind, dtype)


def matrix(n, m, dtype="f8"):
    return np.random.default_rng(n * 7 + m).standard_normal((n, m)).astype(dtype)


@pytest.fixture(scope="module")
def runs():
    return {kind: (by_columns(kernel(kind), refused), kernel(kind)) for kind in ("sum", "max", "prod", "min")}


def agree(runs, kind, n, m, team):
    x = matrix(n, m)
    run, long_way = runs[kind]
    wanted = long_way(x, axes=(0,))
    with threads(1):
        alone = run(x)
    with threads(team):
        found = run(x)
    np.testing.assert_array_equal(found, alone, strict=True)
    if m > 3:  # narrow rows may be read along their columns
        np.testing.assert_array_equal(found, wanted, strict=True)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


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
    x = matrix(3 * COMBINED_ROWS + 5, 70)
    np.testing.assert_allclose(runs["sum"][0](x), x.sum(0), rtol=1e-12)
    np.testing.assert_array_equal(runs["max"][0](x), x.max(0))


def test_nothing_to_combine_goes_elsewhere():
    calls = []

    def fallback(*args):
        calls.append(args)
        return "other"

    run = by_columns(kernel("max"), fallback)
    assert run(matrix(0, 4)) == "other"
    assert run(matrix(COMBINED_ROWS + 1, 0)).shape == (0,)
    assert run(matrix(COMBINED_ROWS + 1, 3)[:, ::-1]) == "other"
    assert run(np.float64(2.0)) == "other"
    assert len(calls) == 3


def test_numbers_of_four_bytes():
    x = matrix(2 * COMBINED_ROWS + 3, 40, "f4")
    found = by_columns(kernel("sum", F4), refused)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x.astype("f8").sum(0), rtol=1e-4, atol=1e-3)


def test_partial_results_are_given_back(runs):
    run, x = runs["min"][0], matrix(COMBINED_ROWS + 9, 5)
    run(x)
    COMPILING.drain()
    gc.collect()
    before, blocks = sys.getrefcount(F8), sys.getallocatedblocks()
    for _ in range(1000):
        run(x)
    gc.collect()
    assert abs(sys.getrefcount(F8) - before) < 10
    assert sys.getallocatedblocks() - blocks < 100
