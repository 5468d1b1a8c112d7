"""Calls planned in machine code against those planned in Python, for operands of any strides and any team."""

import gc
import itertools
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native_kernels import FUNCTIONS
from native_rooms import compiled
from runtime_rooms import COMPILING
from tenferro_cpu import threads
from tenferro_cpu.native import available
from tenferro_cpu.native.kernels import _limits
from tenferro_cpu.native.kernels._elementwise import Elementwise
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._strided import MAX_VARIANTS, Variants
from tenferro_tensor.catalog import atan2, complex, lt, mul
from thorough import tries

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8 = np.dtype("float64")


def refused(*_):
    raise AssertionError("handed to the fallback")


@pytest.fixture(scope="module")
def less():
    """A kernel with machine code for every way to lie that arrays of two operands have here."""
    made = Elementwise(lt.op(), (F8, F8))
    for reads in itertools.product(Access, repeat=2):
        for write in (Access.UNIT, Access.STRIDED):
            made.address((*reads, write))
    return made


def agree(run, x, y):
    found = run(x, y)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, x < y, strict=True)


def laid(draw, rng, own):
    """An array of an extent, that lies in any way."""
    x = rng.standard_normal((*own, 2))[..., 0] if draw(st.booleans()) else rng.standard_normal(own)
    order = draw(st.permutations(range(x.ndim)))
    x = x.transpose(order).copy().transpose(np.argsort(order)) if draw(st.booleans()) else x
    return x[tuple([slice(None, None, draw(st.sampled_from([1, -1]))) for _ in own])]


@st.composite
def pairs(draw):
    """Two arrays that broadcast, of any strides, zero extents among them; one may have fewer axes."""
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    own = [tuple([draw(st.sampled_from([d, 1])) for d in shape]) for _ in range(2)]
    own[1] = own[1][draw(st.integers(0, len(shape))) :]
    arrays = [np.asarray(laid(draw, rng, d)) for d in own]
    return arrays[:: draw(st.sampled_from([1, -1]))]


@settings(max_examples=tries(120, 1000), deadline=None)
@given(xs=pairs())
def test_operands_that_broadcast(less, xs):
    agree(less.strided(refused), *xs)


@pytest.mark.parametrize("team", [1, 3])
@pytest.mark.parametrize("shape", [(700, 300), (3, 70_000), (70_000, 3), (200_000,), (40, 50, 60)])
@FUNCTIONS
def test_large_spaces_are_cut_for_the_team(shape, team):
    rng = np.random.default_rng(0)
    for kernel in (Elementwise(mul.op(), (F8, F8)), Elementwise(atan2.op(), (F8, F8))):
        for x in (rng.standard_normal(shape), rng.standard_normal(shape[::-1]).T):
            for y in (np.array(rng.standard_normal(shape[-1])), rng.standard_normal((*shape[:-1], 1)), x[::-1]):
                wanted = kernel(x, y)  # compiles what is missing
                with threads(team):
                    np.testing.assert_array_equal(kernel.strided(refused)(x, y), wanted, strict=True)


def test_the_rest_goes_to_the_fallback(less):
    calls = []

    def fallback(*args):
        calls.append(args)
        return "other"

    run, x, y = less.strided(fallback), np.ones((3, 4)).T, np.ones(3)
    raw = np.zeros(8 * 12 + 1, "u1")[1:].view("f8").reshape(4, 3)
    odd = [
        (raw, y), (x.astype("f4"), y), (x.astype(">f8"), y), (x,), (x, y, y), (x, None), (x, np.ones(2)),
        (x, True), (x, 2**60 + 1),
        (x, np.float32(1)), (np.ones((1,) * 9), y), (np.ones((0, 3)), np.ones((2, 1, 3)), y), (x, [1.0, 2.0, 3.0]),
        (np.array(1.0), np.float64(2.0)),
        (np.ones((0, 3)), np.ones((2, 3))), (np.ma.masked_array(x), y),
    ]  # fmt: skip
    for args in odd:
        assert run(*args) == "other", args
        assert [x is y for x, y in zip(calls.pop(), args, strict=True)] == [True] * len(args)
        assert not calls
    agree(run, x, y)
    agree(less.strided(fallback), x, np.float64(2.0))
    one = Elementwise(mul.op(), (F8, F8))
    run = one.strided(fallback)
    assert run(x, y) == "other"  # no machine code yet
    one(x, y)
    np.testing.assert_array_equal(run(x, y), x * y)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("number", [0, 3, -7, 2.5, -0.0, float("nan"), float("inf"), 1e300, 2**53, -(2**63), 2**64])
def test_numbers_of_python(dtype, number):
    kernel = Elementwise(mul.op(), (np.dtype(dtype),) * 2)
    kernel.address((Access.UNIT, Access.FIXED, Access.UNIT))
    run, x = kernel.strided(lambda *_: "other"), np.arange(6).reshape(2, 3).astype(dtype)
    found = run(x, number)
    whole = isinstance(number, int)
    if dtype == "int64":
        taken = whole and -(2**63) <= number < 2**63
    else:
        taken = (not whole or -(2**53) <= number < 2**53) and (dtype == "float64" or number != 1e300)
    if taken:
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, x * np.dtype(dtype).type(number), strict=True)
    else:
        assert isinstance(found, str)


def test_impossible_results_are_errors(less):
    x = np.broadcast_to(np.ones(1), (2**40, 1))
    with pytest.raises((ValueError, MemoryError)):
        less.strided(less)(x, np.broadcast_to(np.ones(1), (2**40,)))


def test_tables_are_bounded_and_have_each_way_once():
    table, ways = Variants(), list(itertools.product(Access, repeat=4))
    for code, way in enumerate([*ways, *ways], 1):
        table.add(way, code)
    assert table._count == MAX_VARIANTS
    assert table.table[:MAX_VARIANTS, 1].tolist() == list(range(1, MAX_VARIANTS + 1))
    assert table.table[MAX_VARIANTS].tolist() == [0, 0]


def test_dtypes_of_different_widths():
    kernel = Elementwise(complex.op(), (F8, F8))
    x, y = np.arange(35.0).reshape(5, 7).T, np.arange(5.0)
    kernel(x, y)
    np.testing.assert_array_equal(kernel.strided(refused)(x, y), x + 1j * y, strict=True)


def test_threads_share_a_table(less):
    x, y = np.random.default_rng(0).standard_normal((40, 30)).T, np.arange(40.0)
    kernel = Elementwise(lt.op(), (F8, F8))
    run, wrong = kernel.strided(kernel), []

    def work():
        for _ in range(300):
            try:
                agree(run, x, y)
            except BaseException as error:
                wrong.append(error)
                raise

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_many_calls_leak_nothing(less):
    x, y = np.arange(24.0).reshape(4, 6).T, np.arange(4.0)
    run = less.strided(lambda *_: None)
    watched = [x, y, x.dtype, np.dtype("bool"), less]
    COMPILING.drain()
    gc.collect()
    before, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    for _ in range(4000):
        run(x, y)
        run(x, x)  # refused
    gc.collect()
    assert max(abs(sys.getrefcount(o) - b) for o, b in zip(watched, before, strict=True)) < 10
    assert sys.getallocatedblocks() - blocks < 100


@pytest.mark.parametrize("name", ["MAX_OPERANDS", "MAX_AXES", "COMBINED_ROWS"])
def test_bounds_are_those_of_the_c_code(name):
    assert getattr(compiled, name) == getattr(_limits, name)
