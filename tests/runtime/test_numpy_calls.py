"""Functions with NumPy's names against NumPy: on concrete, traced and batched values, and their derivatives."""

import warnings
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from array_oracles import assert_same
from numpy_calls import CALLS
from tenferro_ad import check_grads, grad
from tenferro_tensor import Spec, functions
from tenferro_tensor.calls import kin
from tenferro_tensor.direct import DIRECT
from tenferro_tensor.dispatch import recording
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, HostAdapterError, ShapeError, TracingError

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
    with recording(lambda decision: None):  # no direct form
        slowly = call.f(tr, *given)
    assert_same(slowly, wanted(call, xs))
    for leaf, other in zip(tr.tree_leaves(result), tr.tree_leaves(slowly), strict=True):
        assert (leaf.spec, leaf.numpy().tobytes()) == (other.spec, other.numpy().tobytes())
    assert type(result) is type(slowly)
    for x, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("name", [n for n, c in CALLS.items() if c.operands])
def test_assignment_to_arguments_and_results_changes_them_and_their_views_alone(name):
    call = CALLS[name]
    given = [tr.asarray(x, copy=True) for x in call.arrays(call.dtypes[0])]
    for changed in (tr.tree_leaves(call.f(tr, *given)), given):
        others = [*given, *tr.tree_leaves(call.f(tr, *given)), *changed]
        for x in changed:
            views = kin(x)
            before = [(y, np.array(y)) for y in others if not any(y is v for v in views)]
            x[...] = x.dtype.type(1)
            for y, was in before:
                np.testing.assert_array_equal(y.numpy(), was)


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


def test_every_direct_form_of_these_functions_is_compared():
    for name in functions.DEFERRED:
        getattr(functions, name)
    forms = {f.__name__ for f in DIRECT if getattr(f.form, "__module__", "") == _numpy_forms.__name__}
    compared = {name.partition(" ")[0] for name in CALLS}
    assert len(forms) > 25
    assert forms - compared == set()


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


def test_ranges_on_logarithmic_scales():
    pairs: Any = (tr.logspace, np.logspace), (tr.geomspace, np.geomspace)
    kinds: Any = {}, {"num": 5}, {"num": 4, "endpoint": False}, {"num": 1}, {"num": 0}
    for f, g in pairs:
        for kind in kinds:
            assert_same(f(2, 3.5, **kind), g(2, 3.5, **kind))
        assert_same(f(2.0, 7.0, 4, dtype="float32"), g(2.0, 7.0, 4, dtype="float32"))
        ends = np.asarray([1.0, 2.0]), np.asarray([[3.0], [4.0], [5.0]])
        assert_same(f(tr.asarray(ends[0]), tr.asarray(ends[1]), 6, axis=-1), g(ends[0], ends[1], 6, axis=-1))
        check_grads(lambda a, b, f=f: f(a, b, 4), ends)
        run = tr.compile(lambda x, a, f=f: f(a, 9.0, x.shape[0]))
        assert_same(run(tr.ones(3), tr.asarray(2.0)), g(2.0, 9.0, 3))
    assert_same(tr.logspace(0, 3, 4, base=2), np.logspace(0, 3, 4, base=2))
    assert_same(tr.geomspace(-8, -1, 4), np.geomspace(-8, -1, 4))
    assert_same(tr.geomspace(1, 1j, 5), np.geomspace(1, 1j, 5))
    with pytest.raises(ArgumentError, match="cannot start or end at 0"):
        tr.geomspace(0, 1)


def test_functions_buffers_and_iterables():
    assert_same(tr.fromfunction(lambda i, j: i + 2 * j, (2, 3)), np.fromfunction(lambda i, j: i + 2 * j, (2, 3)))
    raw = np.arange(5, dtype="int16").tobytes()
    assert_same(tr.frombuffer(raw, "int16", 3, 2), np.frombuffer(raw, "int16", 3, 2))
    assert_same(tr.fromiter(range(4), "float32"), np.arange(4, dtype="float32"))
    x = tr.ones(3)
    assert tr.copy(x) is not x and not np.shares_memory(np.asarray(tr.copy(x)), np.asarray(x))
    with pytest.raises(HostAdapterError, match="frombuffer: "):
        tr.frombuffer(b"abc", "int64")
    with pytest.raises(HostAdapterError, match="fromiter: "):
        tr.fromiter([1], "int64", 2)


def test_sizes_given_for_distinct_elements_and_extracts():
    x = tr.asarray([[3, 1, 3], [2, 1, 7]])
    every: Any = {"return_index": True, "return_inverse": True, "return_counts": True}
    for size in (2, 4, 6):
        run = tr.compile(lambda x, size=size: tr.unique(x, size=size, fill_value=-1, **every))
        values, index, inverse, counts = run(x)
        want = np.unique(x.numpy(), **every)
        n = min(size, 4)
        assert values.tolist() == [*want[0].tolist()[:n], *[-1] * (size - n)]
        assert (index[:n].tolist(), counts.tolist()) == (
            want[1][:n].tolist(),
            [*want[3][:n].tolist(), *[0] * (size - n)],
        )
        np.testing.assert_array_equal(inverse.numpy(), want[2])
    assert tr.vmap(lambda x: tr.unique(x, size=3))(x).tolist() == [[1, 3, 1], [1, 2, 7]]
    nans = tr.asarray([np.nan, 2.0, np.nan])
    np.testing.assert_array_equal(tr.unique(nans, size=2).numpy(), [2.0, np.nan])
    np.testing.assert_array_equal(tr.unique(nans, size=3, equal_nan=False).numpy(), [2.0, np.nan, np.nan])
    assert tr.unique(tr.ones(0), size=2).tolist() == [0.0, 0.0]
    assert tr.union1d(x, tr.asarray([9]), size=3).tolist() == [1, 2, 3]
    cut = tr.compile(lambda x: tr.extract(x > 2, x, size=4, fill_value=-1))
    assert cut(x).tolist() == [3, 3, 7, -1]
    open_ended = tr.compile(lambda x: tr.sum(tr.extract(x > 2, x) ** 2))
    assert float(open_ended(x)) == 9 + 9 + 49
    assert grad(lambda x: tr.sum(tr.unique(x) ** 2))(tr.asarray([3.0, 1.0, 3.0])).tolist() == [6.0, 2.0, 0.0]
    both = grad(lambda x, y: tr.sum(tr.intersect1d(x, y) ** 2 + tr.setdiff1d(x, y)), (0, 1))
    assert [g.tolist() for g in both(tr.asarray([1.0, 2.0]), tr.asarray([2.0]))] == [[1.0, 4.0], [0.0]]


def test_top_k():
    x = np.asarray([[3.0, 9.0, 5.0, 9.0], [1.0, 0.0, 2.0, -1.0]])
    values, indices = tr.top_k(tr.asarray(x), 2)
    assert values.tolist() == [[9.0, 9.0], [2.0, 1.0]] and indices.tolist() == [[1, 3], [2, 0]]
    assert tr.top_k(tr.asarray(x), 1, axis=0).indices.tolist() == [[0, 0, 0, 0]]
    assert tr.compile(lambda x: tr.top_k(x, x.shape[0]))(tr.asarray(x)).values.tolist() == values.tolist()
    check_grads(lambda x: tr.top_k(x, 3).values ** 2, (x[1],))
    with pytest.raises(ArgumentError, match="from 0 to 4 elements along axis 1"):
        tr.top_k(tr.asarray(x), 5)


def test_values_put_along_an_axis():
    x = np.zeros((2, 3))
    at, values = np.asarray([[2], [0]]), np.asarray([[7.0], [8.0]])
    want = x.copy()
    np.put_along_axis(want, at, values, 1)

    def put(x, i, v):
        x = x.copy()
        assert tr.put_along_axis(x, i, v, 1) is None
        return x

    given = [tr.asarray(v) for v in (x, at, values)]
    assert_same(put(*given), want)
    assert_same(tr.compile(put)(*given), want)
    assert_same(given[0], x)
    check_grads(lambda x, v: put(x, at, v) ** 2, (x, values))
    ones = tr.ones((2, 2))
    tr.put_along_axis(ones, [3], 5.0, None)
    assert ones.tolist() == [[1.0, 1.0], [1.0, 5.0]]


def test_a_traced_index_may_be_deleted():
    x = tr.arange(4)
    drop = tr.compile(lambda x, i: tr.delete(x, i))
    assert [drop(x, tr.asarray(i)).tolist() for i in (0, 2, -1)] == [[1, 2, 3], [0, 1, 3], [0, 1, 2]]


def test_further_operands_that_do_not_fit_are_named():
    x = tr.ones(4)
    for f, kind, text in (
        (lambda: tr.select([x > 0], []), ArgumentError, "one choice for each condition"),
        (lambda: tr.select([x], [x]), ArgumentError, "condition 0 is float64"),
        (lambda: tr.piecewise(x, [x > 0], [1, 2, 3]), ArgumentError, "for each of the 1 conditions"),
        (lambda: tr.choose(tr.asarray([2]), [x, x]), AxisError, "outside of the 2 choices"),
        (lambda: tr.extract(x > 0, tr.ones(3)), ShapeError, "a condition for each element"),
        (lambda: tr.put_along_axis(tr.asarray(x), [[0]], 1.0, 0), ShapeError, "indices with the 1 axes"),
        (lambda: tr.delete(x, 4), AxisError, "index 4 is out of bounds for axis 0 with extent 4"),
        (lambda: tr.delete(x, [7]), AxisError, "index 7 is out of bounds"),
        (lambda: tr.insert(x, 5, 0.0), AxisError, "index 5 is out of bounds"),
        (lambda: tr.insert(tr.asarray([1]), 0, 0.5), DTypeError, "does not fit into"),
        (lambda: tr.resize(x, (-1,)), ArgumentError, "extents of at least 0"),
        (lambda: tr.trim_zeros(x, "x"), ArgumentError, "trim 'f', 'b' or 'fb'"),
        (lambda: tr.partition(x, 4), AxisError, "place 4 is out of bounds"),
        (lambda: tr.lexsort(()), ShapeError, "at least one key"),
        (lambda: tr.polyval(tr.ones((2, 2)), x), ShapeError, "polyval takes a vector of coefficients"),
        (lambda: tr.polyder(x, -1), ArgumentError, "an order of at least 0, got -1"),
        (lambda: tr.polyint(x, 3, [1, 2]), ArgumentError, "for each of 3 times, got 2"),
        (lambda: tr.vander(tr.ones((2, 2))), ShapeError, "vander takes a vector"),
        (lambda: tr.compile(lambda x: tr.delete(x, x > 0))(x), TracingError, "not known while tracing"),
        (lambda: tr.compile(lambda p: tr.polymul(p, p, trim_leading_zeros=True))(x), TracingError, "are known"),
    ):
        with pytest.raises(kind, match=text):
            f()
