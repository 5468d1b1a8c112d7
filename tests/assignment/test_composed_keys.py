"""Writes through views of views write the elements themselves, by one key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import grad, vjp
from tenferro_tensor.functions._composed_keys import composed


@st.composite
def chains(draw):
    """A shape, and keys of integers, slices and ellipses, each for the view of the one before."""
    shape = tuple(draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    x, keys = np.zeros(shape), []
    for _ in range(draw(st.integers(1, 3))):
        parts = []
        for n in x.shape[: draw(st.integers(0, x.ndim))]:
            if n and draw(st.booleans()):
                parts.append(draw(st.integers(-n, n - 1)))
            else:
                parts.append(draw(st.slices(n)))
        keys.append((*parts, ...) if draw(st.booleans()) else tuple(parts))
        x = x[keys[-1]]
    return shape, keys


@given(chains())
def test_the_key_addresses_the_same_elements(chain):
    shape, keys = chain
    x = np.arange(np.prod(shape)).reshape(shape)
    key = composed(shape, keys)
    want = x
    for k in keys:
        want = want[k]
    assert key is not None
    np.testing.assert_array_equal(x[key], want)


def in_a_loop(x, i):
    """Writes through views of views whose starts are known only at run time."""
    inner = x[1:-1]
    inner[i, :2] += 1.0
    row = inner[i]
    row[2:] *= 2.0
    run = inner[i : i + 2]
    run[1, -1] = run[0, 0]
    x[i][::-1][1:3] = 7.0
    return x


@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_starts_that_are_known_at_run_time(dtype):
    def whole(x):
        return tr.fori_loop(0, 3, lambda i, c: in_a_loop(c, i.astype(dtype)), x * 1.0)

    a = np.arange(30.0).reshape(6, 5)
    want = a.copy()
    for i in range(3):
        in_a_loop(want, i)
    f = tr.compile(whole)
    for found in (whole(tr.asarray(a)), f(tr.asarray(a)), vjp(whole, tr.asarray(a))[0]):
        np.testing.assert_array_equal(np.asarray(found), want)
    total = lambda x: (whole(x) ** 2).sum()
    np.testing.assert_allclose(
        np.asarray(tr.compile(grad(total))(tr.asarray(a))), np.asarray(grad(total)(tr.asarray(a)))
    )


def test_an_index_before_an_array_stays_outside_of_it():
    """Beside an array, an integer counts as one, and would move the axes of both to the front."""

    def f(x, v):
        row = x[1]
        row[:, [0, 2]] = v
        return x

    a, v = np.arange(24.0).reshape(2, 3, 4), np.arange(6.0).reshape(3, 2)
    want = f(a.copy(), v)
    for way in (lambda x: f(x * 1.0, v), tr.compile(lambda x: f(x * 1.0, tr.asarray(v)))):
        np.testing.assert_array_equal(np.asarray(way(tr.asarray(a))), want)
    np.testing.assert_array_equal(np.asarray(vjp(lambda x: f(x * 1.0, v), tr.asarray(a))[0]), want)


def test_starts_that_may_lie_outside_are_moved_as_in_reading():
    def f(x, i):
        part = x[i : i + 2]
        part[0] = 9.0
        return x

    compiled = tr.compile(lambda x, i: f(x * 1.0, i))
    assert compiled(tr.zeros(5), tr.asarray(1)).tolist() == [0.0, 9.0, 0.0, 0.0, 0.0]


def test_a_program_writes_the_elements_alone():
    def f(x):
        def body(i, c):
            inner = c[1:-1]
            part = inner[i]
            part[:2] += 1.0
            return c

        return tr.fori_loop(0, x.shape[0] - 2, body, x)

    program = tr.trace(f, tr.Spec((tr.dim("n"), 1000), tr.float64))
    assert "float64[2]" in str(program) and "float64[1000]" not in str(program), "a row is copied"
