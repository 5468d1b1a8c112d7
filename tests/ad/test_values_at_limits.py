"""Values and derivatives by their limits: `logsumexp` of infinities, `std` of equal numbers; every mode and order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, hessian, jacfwd, jacrev, jvp, variable, vjp

INF = np.inf
Transform = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
FIRST: dict[str, Transform] = {
    "reverse": grad,
    "forward": jacfwd,
    "compiled reverse": lambda f: tr.compile(grad(f)),
    "compiled forward": lambda f: tr.compile(jacfwd(f)),
    "reverse of compiled": lambda f: grad(tr.compile(f)),
    "forward of compiled": lambda f: jacfwd(tr.compile(f)),
}
SECOND: dict[str, Transform] = {
    "forward over reverse": hessian,
    "reverse over reverse": lambda f: jacrev(grad(f)),
    "forward over forward": lambda f: jacfwd(jacfwd(f)),
    "reverse over forward": lambda f: jacrev(jacfwd(f)),
    "compiled": lambda f: tr.compile(hessian(f)),
    "of compiled": lambda f: hessian(tr.compile(f)),
}


def _log_sum(x: Any) -> Any:
    return tr.logsumexp(x)


def _deviation(x: Any) -> Any:
    return tr.std(x)


LIMITS: dict[str, tuple[list[float], float, list[float]]] = {
    "all minus infinity": ([-INF, -INF], -INF, [0.5, 0.5]),
    "one minus infinity": ([-INF], -INF, [1.0]),
    "infinity": ([INF, 1.0, 2.0], INF, [1.0, 0.0, 0.0]),
    "two infinities": ([INF, 1.0, INF], INF, [0.5, 0.0, 0.5]),
    "both infinities": ([INF, -INF], INF, [1.0, 0.0]),
    "minus infinity beside numbers": ([-INF, 1.0, 1.0], 1.0 + np.log(2), [0.0, 0.5, 0.5]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("transform", FIRST)
@pytest.mark.parametrize("name", LIMITS)
def test_logsumexp_of_infinities(name: str, transform: str, dtype: str) -> None:
    given, value, slopes = LIMITS[name]
    x = tr.asarray(given, dtype=dtype)
    for f in (_log_sum, tr.compile(_log_sum)):
        np.testing.assert_allclose(np.asarray(f(x)), value, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(FIRST[transform](_log_sum)(x)), slopes, rtol=1e-6)


@pytest.mark.parametrize("transform", SECOND)
@pytest.mark.parametrize("name", LIMITS)
def test_second_derivatives_of_logsumexp_at_infinities(name: str, transform: str) -> None:
    given, value, slopes = LIMITS[name]
    found = np.asarray(SECOND[transform](_log_sum)(tr.asarray(given)))
    want = np.diag(slopes) - np.outer(slopes, slopes) if np.isfinite(value) else np.zeros((len(given),) * 2)
    np.testing.assert_allclose(found, want, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LIMITS)
def test_softmax_of_infinities_is_the_derivative_of_logsumexp(name: str, dtype: str) -> None:
    given, value, shares = LIMITS[name]
    x = tr.asarray(given, dtype=dtype)
    logs = np.array([np.log(s) if s else -INF for s in shares])
    slopes = np.diag(shares) - np.outer(shares, shares) if np.isfinite(value) else np.zeros((len(given),) * 2)
    for of in (lambda f: f, tr.compile):
        found = of(tr.softmax)(x)
        assert str(found.dtype) == dtype
        np.testing.assert_allclose(np.asarray(found), shares, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(of(tr.log_softmax)(x)), logs, rtol=1e-6, atol=1e-15)
        for jacobian in (jacfwd, jacrev):
            np.testing.assert_allclose(np.asarray(of(jacobian(tr.softmax))(x)), slopes, atol=1e-7)


def test_the_derivative_of_logsumexp_of_nan_is_nan() -> None:
    x = tr.asarray([[np.nan, 1.0], [0.0, 0.0]])
    for of in (lambda f: f, tr.compile):
        found = np.asarray(of(grad(lambda v: tr.sum(tr.logsumexp(v, axis=1))))(x))
        assert np.isnan(found[0]).all()
        np.testing.assert_allclose(found[1], 0.5)


def test_rows_of_softmax_do_not_mix() -> None:
    x = np.array([[-INF, -INF], [1.0, 1.0], [INF, 0.0], [-INF, 3.0]])
    rows: Callable[[Any], Any] = lambda v: tr.softmax(v, axis=1)
    for f in (rows, tr.compile(rows), tr.vmap(tr.softmax)):
        np.testing.assert_allclose(np.asarray(f(x)), [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])


def test_rows_of_logsumexp_do_not_mix() -> None:
    x = np.array([[-INF, -INF], [1.0, 1.0], [INF, 0.0], [-INF, 3.0]])
    rows: Callable[[Any], Any] = lambda v: tr.logsumexp(v, axis=1)
    columns: Callable[[Any], Any] = lambda v: tr.logsumexp(v, axis=1, keepdims=True)
    want = np.array([-INF, 1 + np.log(2), INF, 3.0])
    for f in (rows, columns, tr.compile(rows), tr.compile(columns)):
        y, pull = vjp(f, x)
        np.testing.assert_allclose(np.asarray(y).ravel(), want)
        slopes = np.asarray(pull(tr.ones(y.shape))[0])
        np.testing.assert_allclose(slopes, np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]))
    assert np.isnan(np.asarray(tr.logsumexp(tr.asarray([np.nan, 1.0]))))


def test_a_variable_of_infinities() -> None:
    x = variable([-INF, -INF, -INF, -INF])
    tr.logsumexp(x).backward()
    np.testing.assert_array_equal(np.asarray(x.grad), [0.25] * 4)


def test_logsumexp_where_it_is_smooth() -> None:
    x = tr.asarray([[0.3, -1.2, 800.0, 799.0], [5.0, 4.0, 3.0, -700.0]])
    check_grads(lambda v: tr.logsumexp(v, axis=1), (x,), order=3)


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [3.0], [0.0, 0.0]])
@pytest.mark.parametrize("transform", FIRST)
def test_derivatives_of_std_of_equal_numbers_are_zero(transform: str, values: list[float]) -> None:
    found = np.asarray(FIRST[transform](_deviation)(tr.asarray(values)))
    np.testing.assert_array_equal(found, np.zeros(len(values)))


@pytest.mark.parametrize("transform", SECOND)
def test_second_derivatives_of_std_of_equal_numbers_are_zero(transform: str) -> None:
    found = SECOND[transform](_deviation)
    np.testing.assert_array_equal(np.asarray(found(tr.ones(3))), np.zeros((3, 3)))
    np.testing.assert_array_equal(np.asarray(jvp(found, (tr.ones(3),), (tr.arange(3.0),))[1]), np.zeros((3, 3)))


def test_std_of_rows_some_of_which_are_constant() -> None:
    x = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 6.0]])
    losses: list[Callable[[Any], Any]] = [
        lambda v: tr.sum(tr.std(v, axis=1)),
        lambda v: tr.sum(tr.std(v, axis=1, correction=1)),
    ]
    for correction, f in enumerate(losses):
        want = np.stack([np.zeros(3), (x[1] - 3.0) / ((3 - correction) * x[1].std(ddof=correction))])
        for g in (grad(f), tr.compile(grad(f)), jacfwd(f)):
            np.testing.assert_allclose(np.asarray(g(x)), want, atol=1e-15)
    z = np.array([1 + 2j, 1 + 2j])
    np.testing.assert_array_equal(np.asarray(grad(tr.std)(z)), np.zeros(2))
    check_grads(tr.std, (tr.asarray([1.0, 2.0, 6.0]),), order=3)
