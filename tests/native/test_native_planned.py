"""Planned reductions: one built-in function for each layout, equal to the long way, and refused by what is not so."""

import gc
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native_rooms import Reduced
from runtime_rooms import COMPILING
from tenferro_cpu.native import available
from tenferro_tensor_core import AxisError, DTypeError

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")


@pytest.fixture(scope="module")
def summed():
    return Reduced("sum", np.dtype("float64"))


@st.composite
def arrays(draw):
    """An array of strides of any kind, zero extents among them."""
    shape = tuple(draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.standard_normal((*shape, 2))[..., 0] if draw(st.booleans()) else rng.standard_normal(shape)
    x = np.asfortranarray(x) if draw(st.booleans()) else x
    x = x[..., :1] if draw(st.booleans()) else x
    return np.broadcast_to(x, shape)[:: draw(st.sampled_from([1, -1]))]


@settings(max_examples=120, deadline=None)
@given(x=arrays(), data=st.data())
def test_later_reductions_are_the_first_one(summed, x, data):
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))))
    for _ in range(3):
        np.testing.assert_allclose(summed(x, axes=axes), x.sum(axes), rtol=1e-13, atol=1e-13)


def test_layouts_become_one_call(summed):
    x = np.arange(24.0).reshape(4, 6).T
    for axes in ((0,), (1,)):
        summed(x, axes=axes)
        assert summed._by_layout[x.shape, x.strides, axes] is not None
        assert (x.shape, (8, 8), axes) not in summed._by_layout


def test_axes_tell_plans_apart(summed):
    x = np.arange(16.0).reshape(4, 4)
    for axes in ((0,), (1,), (0,), (1,)):
        np.testing.assert_allclose(summed(x, axes=axes), x.sum(axes))


def test_what_is_not_so_after_all_is_refused(summed):
    x = np.arange(8.0).reshape(2, 4).T
    expected = summed(x, axes=(0,))
    np.testing.assert_array_equal(summed(x, axes=(0,)), expected)
    raw = np.zeros(65, "u1")
    odd = raw[1:].view("f8").reshape(2, 4).T  # misaligned, of the same shape and strides
    odd[...] = x
    assert not odd.flags.aligned
    np.testing.assert_array_equal(summed(odd, axes=(0,)), expected)
    with pytest.raises(DTypeError, match="operand 0 of the kernel is int64"):
        summed(x.astype("int64", order="K"), axes=(0,))
    with pytest.raises(AxisError):
        summed(x, axes=(2,))
    with pytest.raises(DTypeError):
        summed(x.astype(">f8", order="K"), axes=(0,))
    np.testing.assert_array_equal(summed(np.ma.masked_array(x), axes=(0,)), expected)


def test_layouts_are_forgotten_in_turn(summed):
    for n in range(2, 400):
        x = np.arange(2.0 * n)[::2]
        np.testing.assert_allclose(summed(x, axes=(0,)), x.sum())
    assert len(summed._by_layout) <= 256


def test_many_calls_leak_nothing(summed):
    x = np.arange(24.0).reshape(4, 6).T
    summed(x, axes=(0,))
    watched = [x, x.dtype, summed]
    COMPILING.drain()
    gc.collect()
    before, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    for _ in range(4000):
        summed(x, axes=(0,))
    gc.collect()
    assert max(abs(sys.getrefcount(o) - b) for o, b in zip(watched, before, strict=True)) < 10
    assert sys.getallocatedblocks() - blocks < 100
