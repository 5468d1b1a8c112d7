"""Derivatives of norms at zero vectors and zero elements, to order 3 and more, in every mode, eager and compiled."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, hessian, jacfwd, jacrev, jvp
from tenferro_linalg import matrix_norm, vector_norm

POWERS = (2, 3, 4, 2.5, 1.5, 0.5, 1, -1, float("inf"))
SECOND: dict[str, Callable[[Any], Any]] = {
    "hessian": hessian,
    "reverse over reverse": lambda f: jacrev(grad(f)),
    "forward over forward": lambda f: jacfwd(jacfwd(f)),
    "reverse over forward": lambda f: jacrev(jacfwd(f)),
    "compiled hessian": lambda f: tr.compile(hessian(f)),
    "hessian of compiled": lambda f: hessian(tr.compile(f)),
}


def _host(x: Any) -> Any:
    return np.asarray(x)


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("p", POWERS)
def test_all_derivatives_at_the_zero_vector_are_zero(p: float, second: str) -> None:
    f = lambda x: vector_norm(x, ord=p)
    x = tr.zeros(3)
    for first in (grad(f), jacfwd(f), tr.compile(grad(f)), grad(tr.compile(f))):
        np.testing.assert_array_equal(_host(first(x)), np.zeros(3))
    np.testing.assert_array_equal(_host(SECOND[second](f)(x)), np.zeros((3, 3)))
    if "compiled" not in second:
        np.testing.assert_array_equal(_host(jacfwd(SECOND[second](f))(x)), np.zeros((3, 3, 3)))


@pytest.mark.parametrize("second", SECOND)
def test_frobenius_norms_of_a_stack_with_a_zero_matrix(second: str) -> None:
    a = np.array([[[0.0, 0.0], [0.0, 0.0]], [[3.0, 0.0], [0.0, 4.0]]])
    found = _host(SECOND[second](lambda x: tr.sum(matrix_norm(x)))(tr.asarray(a)))
    u = a[1].ravel() / 5
    want = np.zeros((8, 8))
    want[4:, 4:] = (np.eye(4) - np.outer(u, u)) / 5
    np.testing.assert_allclose(found.reshape(8, 8), want, atol=1e-15)


@pytest.mark.parametrize("p", [2, 4, 1.5])
def test_complex_zero_vectors(p: float) -> None:
    f = lambda x: vector_norm(x[0] + 1j * x[1], ord=p)
    for second in SECOND.values():
        np.testing.assert_array_equal(_host(second(f)(tr.zeros((2, 2)))), np.zeros((2, 2, 2, 2)))
    z = np.array([0.0, 3 + 4j])
    np.testing.assert_allclose(_host(grad(lambda v: vector_norm(v, ord=p))(z)), [0.0, 0.6 + 0.8j], atol=1e-15)


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("p", [p for p in POWERS if p > 0])
def test_elements_that_are_zero_leave_the_derivatives_by_the_others_alone(p: float, second: str) -> None:
    f, others = lambda x: vector_norm(x, ord=p), np.array([1.0, -2.0, 0.5])
    x = np.insert(others, 1, 0.0)
    found = _host(SECOND[second](f)(x))
    np.testing.assert_allclose(_host(grad(f)(x)), np.insert(_host(grad(f)(others)), 1, 0.0), rtol=1e-14)
    rest = np.delete(np.delete(found, 1, 0), 1, 1)
    np.testing.assert_allclose(rest, _host(hessian(f)(others)), rtol=1e-12, atol=1e-15)
    along = 1 / np.linalg.norm(others) if p == 2 else 0.0  # exists for p >= 2, and stands in below
    np.testing.assert_allclose(found[1], np.array([0.0, along, 0.0, 0.0]), atol=1e-15)


@pytest.mark.parametrize("p", [-1, -2, -0.5])
def test_norms_of_negative_powers_are_zero_around_an_element_that_is_zero(p: float) -> None:
    f, x = lambda x: vector_norm(x, ord=p), np.array([0.0, 1.0, 2.0])
    assert float(f(x)) == 0.0
    for first in (grad(f), jacfwd(f)):
        np.testing.assert_array_equal(_host(first(x)), np.zeros(3))
    for second in SECOND.values():
        np.testing.assert_array_equal(_host(second(f)(x)), np.zeros((3, 3)))


def _along(f: Callable[[Any], Any], forward: bool) -> Callable[[Any], Any]:
    """The derivative by the first element."""
    e = np.array([1.0, 0.0])
    return (lambda x: jvp(f, (x,), (e,))[1]) if forward else (lambda x: grad(f)(x)[0])


@pytest.mark.parametrize("modes", ["forward", "reverse", "mixed"])
@pytest.mark.parametrize(("p", "want"), [(4, [0, 0, 0, 6, 0]), (6, [0, 0, 0, 0, 0, 120]), (2, [0, 1, 0, -3, 0])])
def test_even_powers_are_smooth_at_elements_that_are_zero(p: int, want: list[float], modes: str) -> None:
    """``(x^4 + 1)^(1/4) = 1 + x^4 / 4 - ...``"""
    f: Callable[[Any], Any] = lambda x: vector_norm(x, ord=p)
    for order, value in enumerate(want):
        f = _along(f, modes == "forward" or (modes == "mixed" and order % 2 == 0))
        np.testing.assert_allclose(float(f(np.array([0.0, 1.0]))), value, atol=1e-13)


def test_odd_and_fractional_powers_are_zero_where_a_derivative_by_a_zero_element_does_not_exist() -> None:
    for p in (3, 5, 2.5, 1.5, 0.5):
        f: Callable[[Any], Any] = partial(vector_norm, ord=p)
        for order in range(5):
            f = _along(f, order % 2 == 0)
            assert float(f(np.array([0.0, 1.0]))) == 0.0
