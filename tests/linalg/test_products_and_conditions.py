"""Chains of products, equations of tensors and condition numbers against NumPy."""

import numpy as np
import pytest

import tenferro_linalg as la
from linalg_checks import DTYPES, assert_derivatives, inner, numbers, with_values
from tenferro_linalg._products import _brackets
from tenferro_tensor_core import ArgumentError, NumericalError, ShapeError

KINDS = ["float64", "complex128"]
NORMS = [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"]


def close(x, y, dtype):
    tol = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(np.asarray(x), y, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", NORMS)
def test_cond_is_that_of_numpy(p, dtype):
    x = numbers(1, (2, 3, 3), dtype)
    close(la.cond(x, p), np.linalg.cond(x, p), dtype)
    if p in (None, 2, -2):
        close(la.cond(x[..., :2], p), np.linalg.cond(x[..., :2], p), dtype)


@pytest.mark.parametrize("p", NORMS)
def test_cond_of_singular_matrices_is_infinite(p):
    x = np.stack([np.diag([1.0, 2.0]), np.diag([1.0, 0.0])])
    found = la.cond(x, p).numpy()
    assert found[1] == (0.0 if p == -2 else np.inf)
    assert found[0] == pytest.approx(np.linalg.cond(x[0], p))


@pytest.mark.parametrize("dtype", KINDS)
def test_derivatives_of_cond(dtype):
    x, v = numbers(2, (3, 3), dtype), numbers(3, (3, 3), dtype)
    for p in (None, -2, 1, np.inf, "fro", "nuc"):
        assert_derivatives(lambda y, p=p: la.cond(y, p), x, v)
    with pytest.raises(la.DegenerateError):
        assert_derivatives(la.cond, with_values((3, 3), (2, 2, 1), dtype, seed=1), v)


def test_cond_refuses_what_it_has_no_number_for():
    with pytest.raises(ShapeError, match="empty matrices"):
        la.cond(np.ones((0, 3)))
    with pytest.raises(ShapeError, match="square"):
        la.cond(np.ones((2, 3)), 1)
    with pytest.raises(ArgumentError, match="ord=5"):
        la.cond(np.eye(2), 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_multi_dot_is_that_of_numpy(dtype):
    chain = [numbers(i, s, dtype) for i, s in enumerate([(3, 9), (9, 2), (2, 7), (7, 4)])]
    close(la.multi_dot(chain), np.linalg.multi_dot(chain), dtype)
    ends = [numbers(5, (3,), dtype), *chain, numbers(6, (4,), dtype)]
    for part in (ends, ends[:-1], ends[1:], ends[:1] + [chain[0]]):
        close(la.multi_dot(part), np.linalg.multi_dot(part), dtype)
    stacks = [numbers(7, (2, 3, 4), dtype), numbers(8, (4, 5), dtype), numbers(9, (2, 5, 3), dtype)]
    close(la.multi_dot(stacks), stacks[0] @ stacks[1] @ stacks[2], dtype)


def test_multi_dot_takes_the_cheapest_order():
    # The example of Cormen et al.: (A1 (A2 A3)) ((A4 A5) A6).
    splits = _brackets([30, 35, 15, 5, 10, 20, 25])
    assert (splits[0, 5], splits[0, 2], splits[3, 5], splits[1, 2]) == (2, 0, 4, 1)


def test_multi_dot_refuses():
    with pytest.raises(ArgumentError, match="two or more"):
        la.multi_dot([np.eye(2)])
    with pytest.raises(ShapeError, match="arrays 0 and 1"):
        la.multi_dot([np.eye(2), np.eye(3)])
    with pytest.raises(ShapeError, match="array 1 has shape"):
        la.multi_dot([np.eye(2), np.ones(2), np.eye(2)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_equations_of_tensors_are_those_of_numpy(dtype):
    a, b = numbers(10, (2, 3, 6), dtype), numbers(11, (2, 3), dtype)
    close(la.tensorinv(a), np.linalg.tensorinv(a), dtype)
    close(la.tensorsolve(a, b), np.linalg.tensorsolve(a, b), dtype)
    turned = a.transpose(2, 0, 1)
    close(la.tensorinv(turned, 1), np.linalg.tensorinv(turned, 1), dtype)
    close(la.tensorsolve(turned, b, axes=(0,)), np.linalg.tensorsolve(turned, b, axes=(0,)), dtype)


@pytest.mark.parametrize("dtype", KINDS)
def test_derivatives_of_products_and_equations(dtype):
    x, v, w = (numbers(i, (2, 3, 6), dtype) for i in (12, 13, 14))
    assert_derivatives(lambda y: inner(la.tensorinv(y), w.transpose(2, 0, 1)), x, v)
    assert_derivatives(lambda y: inner(la.tensorsolve(y, x[..., 0]), w[0, 0]), x, v)
    assert_derivatives(lambda y: inner(la.multi_dot([y[0], y[1].mT, y[0]]), w[0]), x, v)


def test_equations_of_tensors_refuse():
    with pytest.raises(ShapeError, match="is not a square map"):
        la.tensorsolve(np.ones((2, 3, 5)), np.ones((2, 3)))
    with pytest.raises(ShapeError, match="another product"):
        la.tensorinv(np.ones((2, 3, 5)))
    with pytest.raises(ArgumentError, match="not positive"):
        la.tensorinv(np.ones((2, 2)), 0)
    with pytest.raises(NumericalError, match="singular"):
        la.tensorinv(np.ones((2, 2)), 1)
