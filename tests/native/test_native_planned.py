"""Planned reductions: one built-in function for each layout, equal to the long way, and refused by what is not so."""

import gc
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenferro_cpu.native import available
from tenferro_cpu.native.kernels._planned import layout_of
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_runtime.rendering._background import COMPILING
from tenferro_tensor.catalog import mul
from tenferro_tensor.device_model import Apply, KernelIR, Operand, Reduction
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8 = Operand(np.dtype("float64"))


@pytest.fixture(scope="module")
def summed():
    return Reduced(KernelIR((F8, F8), (Apply(mul.op(), (0, 1)),), (2,), reduction=Reduction("sum")))


@st.composite
def pairs(draw):
    """Two arrays that broadcast, of strides of any kind, zero extents among them."""
    shape = tuple(draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    arrays = []
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for _ in range(2):
        own = tuple(draw(st.sampled_from([d, 1])) if d else 0 for d in shape)
        x = rng.standard_normal((*own, 2))[..., 0] if draw(st.booleans()) else rng.standard_normal(own)
        x = np.asfortranarray(x) if draw(st.booleans()) else x
        arrays.append(x[::-1] if draw(st.booleans()) else x)
    return arrays


@settings(max_examples=120, deadline=None)
@given(xs=pairs(), data=st.data())
def test_later_reductions_are_the_first_one(summed, xs, data):
    x, y = xs
    rank = max(x.ndim, y.ndim)
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, rank - 1), min_size=1))))
    for _ in range(3):
        found = summed(x, y, axes=axes)
        np.testing.assert_allclose(found, (x * y).sum(axes), rtol=1e-13, atol=1e-13)


def test_layouts_become_one_call(summed):
    x, y = np.arange(24.0).reshape(4, 6).T, np.arange(8.0)[::2]
    for axes in ((0,), (1,)):
        summed(x, y, axes=axes)
        assert summed._by_layout[layout_of((x, y)), axes] is not None
        assert (layout_of((x, y[:1])), axes) not in summed._by_layout


def test_axes_tell_plans_apart(summed):
    x, y = np.arange(16.0).reshape(4, 4), np.arange(8.0).reshape(4, 2)[:, :1]
    for axes in ((0,), (1,), (0,), (1,)):
        np.testing.assert_allclose(summed(x, y, axes=axes), (x * y).sum(axes))


def test_what_is_not_so_after_all_is_refused(summed):
    x, y = np.arange(8.0).reshape(2, 4).T, np.arange(2.0)
    expected = summed(x, y, axes=(0,))
    np.testing.assert_array_equal(summed(x, y, axes=(0,)), expected)
    raw = np.zeros(65, "u1")
    odd = raw[1:].view("f8").reshape(2, 4).T  # misaligned, of the same shape and strides
    odd[...] = x
    assert not odd.flags.aligned
    np.testing.assert_array_equal(summed(odd, y, axes=(0,)), expected)
    with pytest.raises(DTypeError, match="operand 0 of the kernel is int64"):
        summed(x.astype("int64", order="K"), y, axes=(0,))
    with pytest.raises(ArgumentError, match=r"takes 2 array\(s\), got 1"):
        summed(x, axes=(0,))
    with pytest.raises(ShapeError):
        summed(x, np.arange(3.0), axes=(0,))
    with pytest.raises(DTypeError):
        summed(x.astype(">f8", order="K"), y, axes=(0,))
    np.testing.assert_array_equal(summed(np.ma.masked_array(x), y, axes=(0,)), expected)


def test_layouts_are_forgotten_in_turn(summed):
    for n in range(2, 400):
        x = np.arange(2.0 * n)[::2]
        np.testing.assert_allclose(summed(x, x, axes=(0,)), (x * x).sum())
    assert len(summed._by_layout) <= 256


def test_many_calls_leak_nothing(summed):
    x, y = np.arange(24.0).reshape(4, 6).T, np.arange(4.0)
    summed(x, y, axes=(0,))
    watched = [x, y, x.dtype, summed]
    COMPILING.drain()
    gc.collect()
    before, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    for _ in range(100_000):
        summed(x, y, axes=(0,))
    gc.collect()
    assert max(abs(sys.getrefcount(o) - b) for o, b in zip(watched, before, strict=True)) < 10
    assert sys.getallocatedblocks() - blocks < 500
