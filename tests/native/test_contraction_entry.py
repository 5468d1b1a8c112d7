"""The entry of small contractions: what it does itself, what it hands on, and that it keeps count of references."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_cpu.native import available
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionIR
from tenferro_tensor_core import ShapeError

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")

F8 = np.dtype("float64")


def kernel_of(dtype=F8, extents=(3, 4, 5), steps=((0, 1),), output=(2, 0)):
    """``ij,jk->ki``."""
    ir = ContractionIR(np.dtype(dtype), ((0, 1), (1, 2)), extents, output, steps)
    return get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))


def watched(kernel, monkeypatch):
    """The kernel, and the list of calls that its entry hands on to it."""
    calls = []
    whole = type(kernel).__call__
    monkeypatch.setattr(type(kernel), "__call__", lambda self, *raws: calls.append(raws) or whole(self, *raws))
    return kernel.direct(), calls


def test_calls_after_the_first_need_no_python(monkeypatch):
    """Until operands lie otherwise; then these are the ones that the entry takes."""
    direct, calls = watched(kernel_of(), monkeypatch)
    rng = np.random.default_rng(0)
    for x, y, handed_on in [
        (rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), 1),
        (rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), 0),
        (rng.normal(size=(4, 3)).T, rng.normal(size=(4, 5)), 1),
        (rng.normal(size=(4, 3)).T, rng.normal(size=(4, 5)), 0),
        (rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), 1),
        (rng.normal(size=(6, 4))[::-2], rng.normal(size=(4, 5)), 1),
        (rng.normal(size=(6, 4))[::-2], rng.normal(size=(4, 5)), 0),
    ]:
        calls.clear()
        np.testing.assert_allclose(direct(x, y), (x @ y).T, rtol=1e-13)
        assert len(calls) == handed_on


class Derived(np.ndarray):
    """An array of a class of its own."""


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.ones((3, 4)).view(Derived), np.ones((4, 5))),
        (np.ones((3, 4)), np.ones((4, 5), dtype=F8.newbyteorder().newbyteorder())),
    ],
)
def test_other_arrays_are_handed_on(x, y):
    """Classes and dtypes that are equal but not the same."""
    direct = kernel_of().direct()
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(direct(x, y)), np.full((5, 3), 4.0))


def test_what_does_not_fit_is_refused_after_good_calls():
    """The entry checks what it was not made for, and the kernel says it."""
    direct = kernel_of().direct()
    x, y = np.ones((3, 4)), np.ones((4, 5))
    for _ in range(3):
        direct(x, y)
    with pytest.raises(ShapeError, match="dtype float32"):
        direct(x.astype("f"), y)
    with pytest.raises(ShapeError, match=r"shape \(5, 4\)"):
        direct(x, y.T)
    with pytest.raises(ShapeError, match="2 operands got 1"):
        direct(x)
    np.testing.assert_array_equal(direct(x, y), np.full((5, 3), 4.0))


@given(st.tuples(*[st.integers(0, 9)] * 3), st.sampled_from("fdFD"))
def test_all_small_sizes(extents, char):
    """Empty ones among them; results are fresh arrays in order."""
    rng = np.random.default_rng(1)
    m, k, n = extents
    direct = kernel_of(char, extents).direct()
    for _ in range(3):
        x, y = (rng.normal(size=s).astype(char) for s in ((m, k), (k, n)))
        z = direct(x, y)
        assert z.dtype == char and z.flags.c_contiguous and z.flags.owndata
        np.testing.assert_allclose(z, (x @ y).T, rtol=1e-4 if char in "fF" else 1e-12, atol=1e-5)


def test_references_are_counted():
    """Operands and dtype are as free after many calls as before."""
    direct = kernel_of().direct()
    x, y = np.ones((3, 4)), np.ones((4, 5))
    direct(x, y)
    before = [sys.getrefcount(o) for o in (x, y, F8, direct)]
    for _ in range(100):
        direct(x, y)
    assert [sys.getrefcount(o) for o in (x, y, F8, direct)] == before


def test_records_live_until_the_entry_knows_others():
    """Between the two, another thread may be in the entry."""
    kernel = kernel_of()
    direct, (x, y) = kernel.direct(), (np.ones((3, 4)), np.ones((4, 5)))
    direct(x, y)
    numbers, before, seen = kernel._quick, kernel._quick_plan, []

    class Watched:
        def __setitem__(self, place, words):
            seen.append(kernel._quick_plan)
            numbers[place] = words

    kernel._quick = Watched()
    np.testing.assert_array_equal(direct(np.asfortranarray(x), y), np.full((5, 3), 4.0))
    assert len(seen) == 1 and seen[0] is before is not kernel._quick_plan
