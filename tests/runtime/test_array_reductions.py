"""Reductions, statistics, cumulative functions and searches over axes, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import tenferro_runtime as tr
from array_oracles import ALL, FLOATS, INEXACT, NUMBERS, REALS, array, arrays, assert_same, axes_of, seeds, shapes
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, ShapeError

LOOSE = 1e-4


@pytest.mark.parametrize("name", ["sum", "prod", "all", "any", "count_nonzero"])
@given(data=st.data())
def test_reductions(name, data):
    x = data.draw(arrays(ALL))
    axis, keep = data.draw(axes_of(x.ndim)), data.draw(st.booleans())
    want = getattr(np, name)(x, axis=axis, keepdims=keep)
    if name == "count_nonzero":
        want = np.asarray(want, np.int64)
    assert_same(getattr(tr, name)(tr.asarray(x), axis=axis, keepdims=keep), want, rtol=LOOSE)


@pytest.mark.parametrize("name", ["sum", "prod"])
@given(x=arrays(("int8", "uint8", "float32", "bool")), to=st.sampled_from(["int16", "float64", "complex64"]))
def test_accumulation_dtype(name, x, to):
    if np.dtype(to).kind == "i" and x.dtype.kind == "f":
        to = "float64"
    assert_same(getattr(tr, name)(tr.asarray(x), dtype=to), getattr(np, name)(x, dtype=to), rtol=LOOSE)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@given(data=st.data())
def test_extrema(name, data):
    x = data.draw(arrays(REALS, st.lists(st.integers(1, 4), max_size=3).map(tuple)))
    if x.dtype.kind == "f" and data.draw(st.booleans()):
        x = np.where(x > 1, np.asarray(np.nan, x.dtype), x)
    axis, keep = data.draw(axes_of(x.ndim, several=not name.startswith("arg"))), data.draw(st.booleans())
    want = getattr(np, name)(x, axis=axis, keepdims=keep)
    assert_same(getattr(tr, name)(tr.asarray(x), axis=axis, keepdims=keep), want)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@given(data=st.data())
def test_statistics(name, data):
    x = data.draw(arrays(NUMBERS, st.lists(st.integers(2, 4), max_size=3).map(tuple)))
    axis, keep = data.draw(axes_of(x.ndim)), data.draw(st.booleans())
    n = x.size if axis is None else int(np.prod([x.shape[a] for a in np.atleast_1d(np.asarray(axis, int))]))
    options = {} if name == "mean" else {"correction": data.draw(st.sampled_from([0, 1, 0.5]) if n > 1 else st.just(0))}
    want = getattr(np, name)(x, axis=axis, keepdims=keep, **options)
    assert_same(getattr(tr, name)(tr.asarray(x), axis=axis, keepdims=keep, **options), want, rtol=LOOSE)


@given(data=st.data())
def test_normalised_exponentials(data):
    x = data.draw(arrays(FLOATS, st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)))
    axis, keep = data.draw(axes_of(x.ndim)), data.draw(st.booleans())
    big = x * np.asarray(300, x.dtype)
    want = special.logsumexp(big, axis=axis, keepdims=keep)
    assert_same(tr.logsumexp(tr.asarray(big), axis=axis, keepdims=keep), np.asarray(want, x.dtype), rtol=LOOSE)
    assert_same(tr.softmax(tr.asarray(big), axis=axis), special.softmax(big, axis=axis), rtol=1e-3)
    assert_same(tr.log_softmax(tr.asarray(big), axis=axis), special.log_softmax(big, axis=axis), rtol=1e-3)


def test_logsumexp_of_infinities():
    x = np.asarray([[-np.inf, -np.inf], [np.inf, 0.0], [0.0, 0.0]])
    with np.errstate(divide="ignore"):
        assert_same(tr.logsumexp(tr.asarray(x), axis=1), np.asarray([-np.inf, np.inf, np.log(2)]))
        assert_same(tr.logsumexp(tr.zeros((0, 2)), axis=0), np.full(2, -np.inf))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@given(data=st.data())
def test_cumulative(name, data):
    x = data.draw(arrays(NUMBERS, st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    first = data.draw(st.booleans())
    want = getattr(np, name)(x, axis=axis, include_initial=first)
    assert_same(getattr(tr, name)(tr.asarray(x), axis=axis, include_initial=first), want, rtol=LOOSE)
    if x.ndim == 1:
        assert_same(getattr(tr, name)(tr.asarray(x)), getattr(np, name)(x), rtol=LOOSE)


@given(data=st.data())
def test_diff(data):
    x = data.draw(arrays(ALL, st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)))
    axis, n = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.integers(0, 3))
    assert_same(tr.diff(tr.asarray(x), axis=axis, n=n), np.diff(x, axis=axis, n=n), rtol=LOOSE)
    if x.dtype.kind != "b":
        want = np.diff(x, axis=axis, prepend=x, append=x)
        assert_same(tr.diff(tr.asarray(x), axis=axis, prepend=tr.asarray(x), append=x), want, rtol=LOOSE)


@given(x=arrays(ALL, st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)))
def test_nonzero(x):
    x = np.where(array(x.shape, "bool", 3), x, np.asarray(0, x.dtype))
    assert_same(tr.nonzero(tr.asarray(x)), np.nonzero(x))
    from tenferro_tensor.functions.searching import _true_flat, _unravelled

    flat = _true_flat(tr.ravel(tr.asarray(x != 0)))  # the way of accelerators, by primitives
    assert_same(_unravelled(flat, x.shape), np.nonzero(x))


@given(data=st.data())
def test_searchsorted(data):
    x1 = np.sort(data.draw(arrays(REALS, st.tuples(st.integers(0, 6)))))
    x2 = data.draw(arrays(REALS))
    side = data.draw(st.sampled_from(["left", "right"]))
    assert_same(
        tr.searchsorted(tr.asarray(x1), tr.asarray(x2), side=side), np.asarray(np.searchsorted(x1, x2, side), int)
    )
    order = np.random.default_rng(1).permutation(x1.size)
    mixed, sorter = x1[order], np.argsort(order)
    got = tr.searchsorted(tr.asarray(mixed), tr.asarray(x2), side=side, sorter=tr.asarray(sorter))
    assert_same(got, np.asarray(np.searchsorted(x1, x2, side), int))


@given(data=st.data())
def test_sorting(data):
    x = data.draw(arrays(ALL, st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)))
    axis, down = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.booleans())
    want = np.sort(x, axis=axis)
    assert_same(tr.sort(tr.asarray(x), axis=axis, descending=down), np.flip(want, axis=axis) if down else want)
    order = tr.argsort(tr.asarray(x), axis=axis, descending=down)
    assert_same(tr.take_along_axis(tr.asarray(x), order, axis=axis), np.flip(want, axis=axis) if down else want)
    if not down:
        assert_same(order, np.argsort(x, axis=axis, stable=True))


@given(x=arrays(ALL))
def test_unique(x):
    want = np.unique_all(x)
    got = tr.unique_all(tr.asarray(x))
    assert_same(got.values, want.values)
    assert_same(got.indices, want.indices)
    assert_same(got.inverse_indices, want.inverse_indices)
    assert_same(got.counts, want.counts)
    assert_same(tr.unique_values(tr.asarray(x)), np.sort(np.unique_values(x)))
    assert_same(tr.unique_counts(tr.asarray(x)).counts, want.counts)
    assert_same(tr.unique_inverse(tr.asarray(x)).inverse_indices, want.inverse_indices)


def test_unique_keeps_every_nan():
    got = tr.unique_all(tr.asarray([np.nan, 1.0, np.nan, 1.0]))
    assert_same(got.values, np.asarray([1.0, np.nan, np.nan]))
    assert_same(got.counts, np.asarray([2, 1, 1]))


@given(x=arrays(REALS), y=arrays(REALS), invert=st.booleans())
def test_isin(x, y, invert):
    assert_same(tr.isin(tr.asarray(x), tr.asarray(y), invert=invert), np.isin(x, y, invert=invert))


@given(shape=shapes, dtype=st.sampled_from(INEXACT), seed=seeds)
def test_methods(shape, dtype, seed):
    x = array(shape, dtype, seed)
    t = tr.asarray(x)
    assert_same(t.sum(), x.sum(), rtol=LOOSE)
    assert_same(t.sum(()), x.sum(axis=()), rtol=LOOSE)
    if x.ndim:
        assert_same(t.sum(-1, keepdims=True), x.sum(-1, keepdims=True), rtol=LOOSE)
        assert_same(t.cumsum(0), x.cumsum(0), rtol=LOOSE)
    assert_same(t.prod(), x.prod(), rtol=LOOSE)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: tr.sum(tr.zeros((2, 3)), axis=2),
            AxisError,
            "sum: axis 2 is out of range for an array with 2 axes; its a",
        ),
        (
            lambda: tr.sum(tr.zeros((2, 3)), axis=(0, -2)),
            AxisError,
            r"sum: axis \(0, -2\) names an axis twice; give each",
        ),
        (
            lambda: tr.max(tr.zeros((2, 0)), axis=1),
            ShapeError,
            "reduce_max over axis 1 .* has no elements to choose from",
        ),
        (lambda: tr.max(tr.asarray([1j])), DTypeError, "reduce_max is not defined for complex128"),
        (lambda: tr.sum(tr.zeros(2), axis=0.5), ArgumentError, "sum takes an integer as axis, got 0.5"),
        (
            lambda: tr.cumulative_sum(tr.zeros((2, 2))),
            ArgumentError,
            "needs an axis for an array with 2 axes; pass axis=",
        ),
        (lambda: tr.diff(tr.zeros(2), n=-1), ArgumentError, "n at least 0, got -1"),
        (
            lambda: tr.nonzero(tr.asarray(1.0)),
            ShapeError,
            "nonzero needs at least one axis, got a 0-d array; reshape it",
        ),
        (
            lambda: tr.searchsorted(tr.zeros(2), tr.zeros(2), side="up"),
            ArgumentError,
            "side='left' or side='right', got 'up'",
        ),
        (lambda: tr.argmax(tr.asarray(1.0), axis=0), AxisError, "with 0 axes; it has no axes"),
    ],
)
def test_error_texts(call, error, text):
    with pytest.raises(error, match=text):
        call()
