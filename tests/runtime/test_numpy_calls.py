"""Functions with NumPy's names against NumPy: on concrete, traced and batched values, and their derivatives."""

import warnings

import numpy as np
import pytest

import tenferro_runtime as tr
from array_oracles import assert_same
from numpy_calls import CALLS
from tenferro_ad import check_grads
from tenferro_tensor import Spec
from tenferro_tensor_core import TracingError

BOTH = [(name, dtype) for name, call in CALLS.items() for dtype in call.dtypes]
IDS = [f"{name}-{dtype}" for name, dtype in BOTH]


def wanted(call, xs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call.f(np, *xs)


@pytest.mark.parametrize(("name", "dtype"), BOTH, ids=IDS)
def test_values(name, dtype):
    call = CALLS[name]
    xs = call.arrays(dtype)
    kept = [x.copy() for x in xs]
    given = [tr.asarray(x) for x in xs]
    result = call.f(tr, *given)
    assert_same(result, wanted(call, xs))
    for leaf in tr.tree_leaves(result):
        assert all(leaf is not x for x in given), "an argument itself is returned"
    for x, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("name", [n for n, c in CALLS.items() if c.traced])
def test_traced(name):
    """Sizes known, and symbolic."""
    call = CALLS[name]
    xs = call.arrays(call.dtypes[0])
    want = wanted(call, xs)
    program = tr.trace(lambda *xs: call.f(tr, *xs), *[Spec(x.shape, x.dtype) for x in xs])
    assert_same(program.run(*xs), tr.tree_leaves(want))
    assert_same(tr.compile(lambda *xs: call.f(tr, *xs))(*map(tr.asarray, xs)), want)


@pytest.mark.parametrize("name", [n for n, c in CALLS.items() if c.smooth])
def test_derivatives(name):
    call = CALLS[name]
    check_grads(lambda *xs: call.f(tr, *xs), tuple(call.arrays("float64")))


@pytest.mark.parametrize("name", [n for n, c in CALLS.items() if c.traced])
def test_lanes(name):
    call = CALLS[name]
    xs = call.arrays(call.dtypes[0])
    pairs = [np.stack([x, x[..., ::-1] if x.ndim else x]) for x in xs]
    found = tr.tree_leaves(tr.vmap(lambda *xs: call.f(tr, *xs))(*map(tr.asarray, pairs)))
    for lane in range(2):
        rows = tr.tree_leaves(call.f(tr, *[tr.asarray(p[lane]) for p in pairs]))
        for row, stacked in zip(rows, found, strict=True):
            assert_same(stacked[lane], row.numpy())


def test_positions_of_a_size_that_is_given():
    x = tr.asarray([[0, 3, 0], [4, 0, 5]])
    assert tr.flatnonzero(x, size=2).tolist() == [1, 3]
    assert tr.flatnonzero(x, size=8, fill_value=-7).tolist() == [1, 3, 5, -7, -7, -7, -7, -7]
    assert tr.argwhere(x, size=4).tolist() == [[0, 1], [1, 0], [1, 2], [0, 0]]
    run = tr.compile(lambda x: (tr.argwhere(x, size=4, fill_value=9), tr.flatnonzero(x, size=2)))
    rows, flat = run(x)
    assert rows.tolist() == [[0, 1], [1, 0], [1, 2], [9, 9]] and flat.tolist() == [1, 3]
    lanes = tr.vmap(lambda x: tr.flatnonzero(x, size=2))(x)
    assert lanes.tolist() == [[1, 0], [0, 2]]


@pytest.mark.parametrize("f", [tr.argwhere, tr.flatnonzero])
def test_sizes_that_depend_on_data_are_refused_in_a_trace(f):
    with pytest.raises(TracingError, match="whose size depends on the elements"):
        tr.compile(f)(tr.ones(3))
