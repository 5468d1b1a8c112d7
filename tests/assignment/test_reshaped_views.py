"""Where NumPy's `reshape` and `ravel` copy, ours give values of their own, and views elsewhere: in every mode."""

import copy
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import jvp, vjp

VIEWS = {
    "itself": lambda x: x, "a row": lambda x: x[1], "rows": lambda x: x[1:], "every other row": lambda x: x[::2],
    "columns": lambda x: x[:, 1:], "one column": lambda x: x[:, 1], "transpose": lambda x: x.T,
    "flipped": lambda x: x[::-1],
    "flipped row": lambda x: x[0, ::-1], "every other element": lambda x: x[0, ::2], "new axis": lambda x: x[:, None],
    "a corner": lambda x: x[:1, :1], "a layer": lambda x: x.reshape(3, 2, 2)[:, 0], "twice": lambda x: x.T[1:].T[0],
}  # fmt: skip
SHAPES = {
    "ravel": lambda v: v.ravel(), "reshape": lambda v: v.reshape(-1), "with an axis": lambda v: v.reshape(1, -1),
    "as it is": lambda v: v.reshape(v.shape),
}  # fmt: skip


def run(x, view, shape):
    x = x * 1.0
    v = view(x)
    shape(v)[...] = -1.0
    return x


def mapped(f):
    return lambda x: tr.vmap(f)(x[None])[0]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_writes_reach_the_base_where_numpy_shares(view, shape):
    x = np.arange(12.0).reshape(3, 4)
    wanted = run(x, view, shape)

    def f(x):
        return run(x, view, shape)

    t = tr.asarray(x)
    ways = [f, lambda x: vjp(f, x)[0], lambda x: jvp(f, (x,), (x,))[0], mapped(f), tr.compile(f)]
    for way in ways:
        np.testing.assert_array_equal(np.asarray(way(t)), wanted)


def test_symbolic_sizes():
    """One program, whose sizes are not known, follows the rule."""

    def f(x, w):
        x, w = x * 1.0, w * 1.0
        x[0] = w  # the extents are equal from here on
        x[1:].reshape(-1)[0] = 5.0
        x.T.reshape(-1)[0] = 7.0
        w.reshape(w.shape[0], -1)[...] = x[1, 1]
        x.reshape(2, -1)[1, 0] = 9.0
        return x, w

    compiled = tr.compile(f)
    for n, m in ((4, 3), (6, 5), (2, 4)):
        x, w = np.arange(float(n * m)).reshape(n, m), np.ones(m)
        for got, want in zip(compiled(tr.asarray(x), tr.asarray(w)), f(x, w), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
    assert compiled.cache_info().traces == 1


def accumulated(x):
    x = x * 1.0
    np.minimum.accumulate(x[::-1], out=x[::-1])
    np.maximum.accumulate(x, axis=1, out=x)
    return x


def test_running_extrema_of_values_of_every_kind():
    x = np.random.default_rng(2).normal(size=(4, 3))
    wanted, t = accumulated(x), tr.asarray(x)
    for way in (accumulated, tr.compile(accumulated), mapped(accumulated), lambda x: vjp(accumulated, x)[0]):
        np.testing.assert_array_equal(np.asarray(way(t)), wanted)
    d = np.random.default_rng(3).normal(size=x.shape)
    tangent = jvp(accumulated, (t,), (tr.asarray(d),))[1]
    slope = (accumulated(x + 1e-6 * d) - accumulated(x - 1e-6 * d)) / 2e-6
    np.testing.assert_allclose(np.asarray(tangent), slope, atol=1e-8)
    assert np.logaddexp.accumulate(t).shape == x.shape
    np.testing.assert_allclose(np.asarray(np.logaddexp.accumulate(t)), np.logaddexp.accumulate(x), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_numbers_take_the_dtype_of_the_array(dtype):
    arrays: list[Any] = [np.zeros((2, 2), dtype), tr.zeros((2, 2), dtype=dtype)]
    for a in arrays:
        np.put(a, [0], 1)
        np.copyto(a[1], True)
        np.fill_diagonal(a, 1)
        np.place(a, np.asarray([[False, True], [False, False]]), 1)
        np.putmask(a, np.asarray([[False, False], [True, False]]), 0)
    x, t = arrays
    assert t.dtype == x.dtype and t.tolist() == x.tolist()


def test_views_without_elements():
    x: Any = tr.zeros((4, 0), dtype="complex128") * 1.0
    v = x.real
    x *= 1.25
    np.subtract(x, x, out=x)
    v[...] = 1.0
    assert x.shape == v.shape == (4, 0)
    m = tr.zeros((0, 3)) * 1.0
    w = m[::-1].T
    m += 1.0
    assert w.shape == (3, 0)


def test_rows_with_gaps_are_written_in_place():
    """The last row of every second element ends before the next one would begin."""
    x = tr.asarray(np.arange(15, dtype="uint8").reshape(3, 5), copy=True)
    at = x.data.ctypes.data
    part = x[:, ::2]
    part *= 2
    assert x.data.ctypes.data == at and x.tolist() == [[0, 1, 4, 3, 8], [10, 6, 14, 8, 18], [20, 11, 24, 13, 28]]


@pytest.mark.parametrize("reverse", [lambda v: v[::-1], tr.flip], ids=["index", "flip"])
def test_one_element_reversed_is_a_view_of_it(reverse):
    x = tr.asarray(np.arange(1.0, 4.0), copy=True)
    e = np.asarray(x)
    v = x[:1]
    v += reverse(v)
    reverse(v)[...] *= 5.0
    assert x.tolist() == e.tolist() == [10.0, 2.0, 3.0]


def test_shallow_copies_of_values_of_every_kind():
    def f(x):
        y = copy.copy(x)
        y[0] = 7.0
        return x * 1.0, y

    x = tr.asarray([1.0, 2.0])
    for way in (f, tr.compile(f), lambda x: vjp(f, x)[0], lambda x: [v[0] for v in tr.vmap(f)(x[None])]):
        assert [np.asarray(v).tolist() for v in way(x)] == [[1.0, 2.0], [7.0, 2.0]]


def test_a_value_of_its_own_has_a_layout_of_its_own():
    """As NumPy's: `ravel` of the result of an operator is a view of it, whatever its operand was a view of."""
    for x in (np.arange(6.0).reshape(2, 3), tr.arange(6.0).reshape(2, 3)):
        y = +x[:, ::-1]
        y.ravel()[0] = 9.0
        assert y.tolist() == [[9.0, 1.0, 0.0], [5.0, 4.0, 3.0]] and x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
