"""Functions with NumPy's names against NumPy: on concrete, traced and batched values, and their derivatives."""

import warnings

import numpy as np
import pytest

import tenferro_runtime as tr
from array_oracles import assert_same
from numpy_calls import CALLS
from tenferro_ad import check_grads, grad
from tenferro_tensor import Spec
from tenferro_tensor_core import ArgumentError, AxisError, ShapeError, TracingError

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


@pytest.mark.parametrize("name", [n for n, c in CALLS.items() if c.traced and c.operands])
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


def test_cumulative_trapezoid():
    from scipy.integrate import cumulative_trapezoid

    y, x = np.random.default_rng(0).normal(size=(2, 3, 5))
    for kind in ({}, {"dx": 0.3}, {"x": x, "axis": 0}, {"x": x[0], "initial": 0}):
        assert_same(tr.cumulative_trapezoid(tr.asarray(y), **kind), cumulative_trapezoid(y, **kind))
    check_grads(lambda y, x: tr.cumulative_trapezoid(y, x, initial=0), (y, x))


def test_interpolation_at_points_takes_the_slope_to_the_right():
    slope = grad(lambda x: tr.sum(tr.interp(x, tr.asarray([0.0, 1.0, 3.0]), tr.asarray([0.0, 2.0, 4.0]))))
    assert slope(tr.asarray([-1.0, 0.0, 1.0, 3.0, 4.0])).tolist() == [0.0, 2.0, 1.0, 0.0, 0.0]


def test_operands_that_do_not_fit_are_named():
    x = tr.ones(4)
    for f, kind, text in (
        (lambda: tr.convolve(x, tr.ones((2, 2))), ShapeError, "convolve takes vectors of at least one element"),
        (lambda: tr.correlate(x, tr.ones(0)), ShapeError, "operand 1 is float64"),
        (lambda: tr.convolve(x, x, mode="all"), ArgumentError, "mode 'full', 'same' or 'valid', got 'all'"),
        (lambda: tr.interp(x, x, tr.ones(3)), ShapeError, "vectors xp and fp of one extent"),
        (lambda: tr.interp(x, x, x, period=0), ArgumentError, "a period other than 0"),
        (lambda: tr.gradient(tr.ones(1)), ShapeError, "at least 2 samples along axis 0"),
        (lambda: tr.gradient(x, edge_order=3), ArgumentError, "edge_order 1 or 2, got 3"),
        (lambda: tr.gradient(x, tr.ones(3)), ShapeError, "a vector of 4 coordinates for axis 0"),
        (lambda: tr.vstack([]), ArgumentError, "vstack needs at least one array"),
        (lambda: tr.block([[x], x]), ArgumentError, "equally deep everywhere"),
        (lambda: tr.array_split(x, 0), ArgumentError, "at least 1 part, got 0"),
        (lambda: tr.diag(tr.ones((2, 2, 2))), ShapeError, "diag takes a vector or a matrix"),
        (lambda: tr.unravel_index(tr.asarray([6]), (2, 3)), AxisError, "outside of shape"),
        (lambda: tr.ravel_multi_index((tr.asarray([2]), tr.asarray([0])), (2, 3)), AxisError, "an index of axis 0"),
        (lambda: tr.rollaxis(x, 0, 3), AxisError, "start 3 is out of range"),
        (lambda: tr.rot90(x), ShapeError, "rot90 needs an array with at least 2 axes"),
    ):
        with pytest.raises(kind, match=text):
            f()
