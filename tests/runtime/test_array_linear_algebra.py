"""Products and diagonals against NumPy, and the short way of ``@``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from array_oracles import ALL, NUMBERS, array, arrays, assert_same, seeds
from tenferro_tensor.functions.linear_algebra import PRODUCTS
from tenferro_tensor_core import ArgumentError, AxisError, ShapeError
from thorough import tries

LOOSE = 2e-4
extents = st.integers(0, 3)


@settings(max_examples=tries(50, 150))
@given(data=st.data())
def test_matmul(data):
    k, m, n = (data.draw(extents) for _ in range(3))
    stack = tuple(data.draw(st.lists(extents, max_size=3)))
    pick = lambda: tuple(data.draw(st.sampled_from([1, d])) for d in stack)[data.draw(st.integers(0, len(stack))) :]
    left = data.draw(st.sampled_from([(k,), (*pick(), m, k)]))
    right = data.draw(st.sampled_from([(k,), (*pick(), k, n)]))
    x, y = (array(s, data.draw(st.sampled_from(NUMBERS)), data.draw(seeds)) for s in (left, right))
    want = np.matmul(x, y)
    assert_same(tr.matmul(tr.asarray(x), tr.asarray(y)), want, rtol=LOOSE)
    assert_same(tr.asarray(x) @ tr.asarray(y), want, rtol=LOOSE)
    assert_same(tr.asarray(x) @ tr.asarray(y), want, rtol=LOOSE)  # a second time, from the tables
    assert_same(tr.asarray(x) @ y, want, rtol=LOOSE)
    assert_same(x @ tr.asarray(y), want, rtol=LOOSE)


def test_plain_products_are_remembered_and_others_are_not():
    x, y = tr.ones((3, 5, 7)), tr.ones((7, 2))
    x @ y
    assert PRODUCTS[x.spec, y.spec].primitive.name == "dot_general"
    z = tr.ones((1, 7, 2))
    assert (x @ z).shape == (3, 5, 2)
    assert (x.spec, z.spec) not in PRODUCTS


@given(data=st.data())
def test_vecdot(data):
    x = data.draw(arrays(NUMBERS, st.lists(extents, min_size=1, max_size=3).map(tuple)))
    axis = data.draw(st.integers(-x.ndim, -1))
    y = array(x.shape, data.draw(st.sampled_from(NUMBERS)), data.draw(seeds))
    assert_same(tr.vecdot(tr.asarray(x), tr.asarray(y), axis=axis), np.vecdot(x, y, axis=axis), rtol=LOOSE)  # type: ignore[call-overload]
    row = array(x.shape[axis:][:1] + (1,) * (-axis - 1), "float64", 3)
    want = np.vecdot(*np.broadcast_arrays(x, row), axis=axis)  # type: ignore[call-overload]
    assert_same(tr.vecdot(tr.asarray(x), tr.asarray(row), axis=axis), want, rtol=LOOSE)


@given(data=st.data())
def test_tensordot(data):
    x = data.draw(arrays(NUMBERS))
    axes = tuple(data.draw(st.permutations(range(x.ndim))))[: data.draw(st.integers(0, x.ndim))]
    rest = tuple(data.draw(st.lists(extents, max_size=2)))
    y = array((*[x.shape[a] for a in axes], *rest), data.draw(st.sampled_from(NUMBERS)), data.draw(seeds))
    pair = (axes, tuple(range(len(axes))))
    assert_same(tr.tensordot(tr.asarray(x), tr.asarray(y), axes=pair), np.tensordot(x, y, pair), rtol=LOOSE)
    n = data.draw(st.integers(0, x.ndim))
    z = array((*x.shape[x.ndim - n :], 2), "float64", 1)
    assert_same(tr.tensordot(tr.asarray(x), tr.asarray(z), axes=n), np.tensordot(x, z, n), rtol=LOOSE)


@given(x=arrays(NUMBERS), y=arrays(NUMBERS))
def test_outer_and_kron(x, y):
    assert_same(tr.outer(tr.asarray(x), tr.asarray(y)), np.outer(x, y), rtol=LOOSE)
    assert_same(tr.kron(tr.asarray(x), tr.asarray(y)), np.kron(x, y), rtol=LOOSE)


@given(x=arrays(ALL, st.lists(st.integers(0, 4), min_size=2, max_size=3).map(tuple)), k=st.integers(-3, 3))
def test_diagonal_and_trace(x, k):
    t = tr.asarray(x)
    assert_same(tr.diagonal(t, offset=k), np.linalg.diagonal(x, offset=k))
    assert_same(t.diagonal(offset=k, axis1=0, axis2=1), x.diagonal(k, 0, 1))
    assert_same(t.trace(offset=k), np.linalg.trace(x, offset=k), rtol=LOOSE)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: tr.zeros((2, 3)) @ tr.zeros((4, 5)),
            ShapeError,
            r"the last axis of the first has extent 3, axis 0 of the se",
        ),
        (lambda: tr.zeros(3) @ tr.asarray(1.0), ShapeError, r"at least one axis, .* multiply by numbers with \*"),
        (lambda: tr.zeros((2, 1, 3)) @ tr.zeros((3, 3, 1)), ShapeError, "do not broadcast"),
        (lambda: tr.zeros(3) @ 2, TypeError, "unsupported operand"),
        (
            lambda: tr.vecdot(tr.zeros((2, 3)), tr.zeros((2, 1))),
            ShapeError,
            "got 3 and 1; that axis does not broadcast",
        ),
        (lambda: tr.tensordot(tr.zeros(2), tr.zeros(2), axes=2), ArgumentError, "tensordot cannot pair 2 axes"),
        (lambda: tr.tensordot(tr.zeros(2), tr.zeros(2), axes=(0, 1)), AxisError, "tensordot: axis 1 is out of range"),
        (lambda: tr.diagonal(tr.zeros(2)), ShapeError, "diagonal needs at least two axes"),
    ],
)
def test_error_texts(call, error, text):
    with pytest.raises(error, match=text):
        call()
