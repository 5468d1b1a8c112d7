"""The entry of small contractions: what it does itself, what it hands on, and that it keeps count of references."""

import sys
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_rooms import compiled
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionIR
from tenferro_tensor_core import ShapeError

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

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


def test_entries_share_the_plan_of_their_kernel():
    """It lives while a call runs through it, also where another thread has put in the next one."""
    kernel = kernel_of()
    first, second = kernel.direct(), kernel.direct()
    x, y = np.ones((3, 4)), np.ones((4, 5))
    first(x, y)
    (plan,) = kernel._small
    assert plan.small
    kernel.forget()
    np.testing.assert_array_equal(second(x, y), np.full((5, 3), 4.0))
    np.testing.assert_array_equal(second(np.asfortranarray(x), y), np.full((5, 3), 4.0))
    assert kernel._small != [plan]


def test_plans_refuse_what_they_are_not_made_for():
    """Arrays that are missing, other objects, and layouts that are none."""
    kernel = kernel_of()
    x, y, z = np.ones((3, 4)), np.ones((4, 5)), np.ones((5, 3))
    kernel(x, y)
    ((plan, run, _),) = kernel._plans.values()
    with pytest.raises(TypeError, match="called with 4 arrays"):
        run(x, y, z)
    with pytest.raises(TypeError, match="argument 2 is <class 'list'>"):
        run(x, y, [], z)
    given = (F8, None, plan.keeps[0], plan.keeps, 4, plan.arena, plan.scratch, False, False)
    for operands, layout in ((2, array("q", [2, 3])), (2, array("q", [99] * 8)), (3, array("q", [0, 0]))):
        with pytest.raises(ValueError, match="layout|arrays are missing"):
            compiled.ContractionPlan(*given, operands, layout)
    with pytest.raises(ValueError, match="no code"):
        compiled.ContractionPlan(np.dtype("i8"), *given[1:], 2, array("q", [0, 0, 0]))


def test_failing_allocations():
    """Whichever allocation fails, a call returns the result or raises, and leaves no references behind."""
    testcapi = pytest.importorskip("_testcapi")
    kernel = kernel_of()
    direct, x, y = kernel.direct(), np.ones((3, 4)), np.ones((4, 5))
    direct(x, y)
    ((plan, _, _),) = kernel._plans.values()
    layout = array("q", [2, 3, 4, 32, 8, 2, 4, 5, 40, 8, 2, 5, 3])
    given = (F8, None, plan.keeps[0], plan.keeps, 4, plan.arena, plan.scratch, False, False, 2, layout)
    watched = (x, y, F8, direct, plan.keeps, plan.keeps[0], layout)
    for call in (lambda: direct(x, y), lambda: compiled.ContractionPlan(*given)):
        failed = 0
        call()
        before = [sys.getrefcount(o) for o in watched]
        for number in range(30):
            found = error = None
            testcapi.set_nomemory(number, number + 1)
            try:
                found = call()
            except MemoryError:
                failed += 1
            finally:
                testcapi.remove_mem_hooks()
            del found, error
            assert [sys.getrefcount(o) for o in watched] == before, number
        assert failed
