"""Calls planned in machine code against those planned in Python, for operands of any strides and any team."""

import gc
import itertools
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_cpu import threads
from tenferro_cpu.native import available
from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.kernels import _limits
from tenferro_cpu.native.kernels._elementwise import Fused
from tenferro_cpu.native.kernels._limits import MAX_OPERANDS
from tenferro_cpu.native.kernels._strided import MAX_VARIANTS, Variants
from tenferro_runtime.rendering._background import COMPILING
from tenferro_tensor.catalog import add, convert, lt, mul
from tenferro_tensor.device_model import Access, Apply, KernelIR, Operand

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8, F4 = Operand(np.dtype("float64")), Operand(np.dtype("float32"))
LINES = (Apply(mul.op(), (0, 1)), Apply(add.op(), (2, 1)), Apply(lt.op(), (3, 0)))


def refused(*_):
    raise AssertionError("handed to the fallback")


@pytest.fixture(scope="module")
def several():
    """Two results, with machine code for every way to lie that arrays of two operands have here."""
    made = Fused(KernelIR((F8, F8), LINES, (3, 4)))
    for reads in itertools.product(Access, repeat=2):
        for writes in ((Access.UNIT, Access.UNIT), (Access.STRIDED, Access.STRIDED)):
            made.compiled((reads, writes, False))
    return made


def expected(x, y):
    return x * y + y, x * y + y < x


def agree(run, x, y):
    for found, wanted in zip(run(x, y), expected(x, y), strict=True):
        assert found.dtype == wanted.dtype
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, wanted, strict=True)


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


@settings(max_examples=300, deadline=None)
@given(xs=pairs())
def test_operands_that_broadcast(several, xs):
    agree(several.strided(refused), *xs)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_operands_that_cover_some_axes(several, data):
    shape = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    every = tuple(range(len(shape)))
    axes = [every, tuple(sorted(data.draw(st.sets(st.sampled_from(every)))))]
    x, y = [np.asarray(laid(data.draw, rng, tuple([shape[a] for a in own]))) for own in axes]
    wide = y.reshape([d if a in axes[1] else 1 for a, d in enumerate(shape)])
    run = several.strided(refused, axes=axes, rank=len(shape))
    for found, wanted in zip(run(x, y), expected(x, wide), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("team", [1, 3])
@pytest.mark.parametrize("shape", [(700, 300), (3, 70_000), (70_000, 3), (200_000,), (40, 50, 60)])
def test_large_spaces_are_cut_for_the_team(several, shape, team):
    rng = np.random.default_rng(0)
    cheap = Fused(KernelIR((F8, F8), LINES[:1], (2,)))
    many = Fused(KernelIR((F8, F8), (*LINES[:2], *[Apply(mul.op(), (k, 1)) for k in range(3, 90)]), (90,)))
    for kernel in (cheap, many):
        for x in (rng.standard_normal(shape), rng.standard_normal(shape[::-1]).T):
            for y in (np.array(rng.standard_normal(shape[-1])), rng.standard_normal((*shape[:-1], 1)), x[::-1]):
                wanted = kernel(x, y)  # compiles what is missing
                with threads(team):
                    np.testing.assert_array_equal(kernel.strided(refused)(x, y), wanted, strict=True)


def test_the_rest_goes_to_the_fallback(several):
    calls = []

    def fallback(*args):
        calls.append(args)
        return "other"

    run, x, y = several.strided(fallback), np.ones((3, 4)).T, np.ones(3)
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
    agree(several.strided(fallback), x, np.float64(2.0))
    fixed = several.strided(fallback, axes=((0, 1), (1,)), rank=2)
    assert fixed(x, x) == "other"
    assert fixed(y, y) == "other"
    one = Fused(KernelIR((F8, F8), LINES[:1], (2,)))
    run = one.strided(fallback)
    assert run(x, y) == "other"  # no machine code yet
    one(x, y)
    np.testing.assert_array_equal(run(x, y), x * y)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("number", [0, 3, -7, 2.5, -0.0, float("nan"), float("inf"), 1e300, 2**53, -(2**63), 2**64])
def test_numbers_of_python(dtype, number):
    operand = Operand(np.dtype(dtype))
    kernel = Fused(KernelIR((operand, operand), LINES[:1], (2,)))
    kernel.compiled(((Access.UNIT, Access.FIXED), (Access.UNIT,), False))
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


def test_impossible_results_are_errors(several):
    x = np.broadcast_to(np.ones(1), (2**40, 1))
    with pytest.raises((ValueError, MemoryError)):
        several.strided(several)(x, np.broadcast_to(np.ones(1), (2**40,)))


def test_tables_are_bounded_and_have_each_way_once():
    table, ways = Variants(), list(itertools.product(Access, repeat=4))
    for code, way in enumerate([*ways, *ways], 1):
        table.add(way, code)
    assert table._count == MAX_VARIANTS
    assert table.table[:MAX_VARIANTS, 1].tolist() == list(range(1, MAX_VARIANTS + 1))
    assert table.table[MAX_VARIANTS].tolist() == [0, 0]


def test_dtypes_of_different_widths():
    lines = (Apply(convert.op(dtype=F8.dtype), (0,)), Apply(mul.op(), (2, 1)))
    kernel = Fused(KernelIR((F4, F8), lines, (3,)))
    x, y = np.arange(35, dtype="f4").reshape(5, 7).T, np.arange(5.0)
    kernel(x, y)
    np.testing.assert_array_equal(kernel.strided(refused)(x, y), x * y, strict=True)


def test_more_operands_than_a_call_takes_are_planned_in_python():
    """Among them more than the key of a table has bits for."""
    x, number = np.arange(6.0).reshape(2, 3).T, np.array(2.0)
    for count in (MAX_OPERANDS, 40):
        lines = [Apply(add.op(), (0, 1)), *[Apply(add.op(), (count + k, k + 2)) for k in range(count - 2)]]
        kernel = Fused(KernelIR((F8,) * count, tuple(lines), (count + len(lines) - 1,)))
        wanted = 2.0 + sum([x] * (count - 1))
        for run in (kernel, kernel.strided(kernel)):
            np.testing.assert_array_equal(run(number, *[x] * (count - 1)), wanted, strict=True)


def test_threads_share_a_table(several):
    x, y = np.random.default_rng(0).standard_normal((40, 30)).T, np.arange(40.0)
    kernel = Fused(KernelIR((F8, F8), LINES, (3, 4)))
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


def test_many_calls_leak_nothing(several):
    x, y = np.arange(24.0).reshape(4, 6).T, np.arange(4.0)
    run = several.strided(lambda *_: None)
    watched = [x, y, x.dtype, np.dtype("bool"), several]
    COMPILING.drain()
    gc.collect()
    before, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    for _ in range(100_000):
        run(x, y)
        run(x, x)  # refused
    gc.collect()
    assert max(abs(sys.getrefcount(o) - b) for o, b in zip(watched, before, strict=True)) < 10
    assert sys.getallocatedblocks() - blocks < 500


@pytest.mark.parametrize("name", ["MAX_OPERANDS", "MAX_AXES", "COMBINED_ROWS"])
def test_bounds_are_those_of_the_c_code(name):
    assert getattr(compiled, name) == getattr(_limits, name)
