"""numba's compiled functions on the memory of tensors, and inside of programs with a derivative of their own."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, custom_rule, grad

numba = pytest.importorskip("numba")


@numba.njit
def recurrence(x: Any, a: Any) -> Any:
    """y[i] = a y[i-1] + x[i]: what no array function does."""
    y = np.empty_like(x)
    total = 0.0
    for i in range(x.size):
        total = a * total + x[i]
        y[i] = total
    return y


@numba.njit
def reversed_recurrence(g: Any, a: Any) -> Any:
    out = np.empty_like(g)
    total = 0.0
    for i in range(g.size - 1, -1, -1):
        total = a * total + g[i]
        out[i] = total
    return out


def on_host(f: Any) -> Any:
    """The function with NumPy's view of each array, and a number for a 0-d array."""
    return lambda x, a: f(np.ascontiguousarray(x), float(a))


def smooth_backward(primals: Any, outs: Any, cotangents: Any) -> Any:
    (_, a), (y,), (g,) = primals, outs, cotangents
    back = tr.pure_callback(on_host(reversed_recurrence), g, g, a)
    return back, tr.sum(back[1:] * y[:-1])


@custom_rule(vjp=smooth_backward)
def smooth(x: Any, a: Any) -> Any:
    return tr.pure_callback(on_host(recurrence), x, x, a)


X = np.random.default_rng(0).normal(size=9)


def by_hand(x: Any, a: float) -> Any:
    return np.array([sum(a ** (i - j) * x[j] for j in range(i + 1)) for i in range(x.size)])


def test_compiled_functions_read_the_memory_of_tensors() -> None:
    x = tr.asarray(X)
    np.testing.assert_allclose(recurrence(np.asarray(x), 0.5), by_hand(X, 0.5))
    assert np.shares_memory(np.asarray(x), np.asarray(x))

    @numba.njit
    def overwrite(x: Any) -> None:
        x[0] = 1.0

    y = x * 1.0
    overwrite(np.asarray(y))
    assert y[0] == 1.0 and x[0] == X[0]


def test_programs_call_them_for_every_size() -> None:
    compiled = tr.compile(lambda x: tr.sum(smooth(2 * x, 0.5) ** 2))
    for n in (4, 9):
        assert compiled(tr.asarray(X[:n])).item() == pytest.approx((by_hand(2 * X[:n], 0.5) ** 2).sum())
    assert compiled.cache_info().traces == 1


def test_their_derivatives_are_those_that_they_are_given() -> None:
    loss = lambda x, a: tr.sum(tr.sin(smooth(x, a)))
    check_grads(loss, (tr.asarray(X), tr.asarray(0.5)), order=1, modes=("rev",))
    eager = grad(loss, (0, 1))(tr.asarray(X), 0.5)
    for a, b in zip(eager, tr.compile(grad(loss, (0, 1)))(tr.asarray(X), 0.5), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b))


def test_concrete_tensors_are_arguments() -> None:
    x = tr.asarray(np.arange(12.0).reshape(3, 4))
    found = recurrence(x[1], 0.5)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, recurrence(np.asarray(x[1]), 0.5))

    @numba.njit
    def fill(y: Any) -> Any:
        y[0, 0] = 7.0
        return y.shape, y.T[1].sum(), np.dot(y, y.T)[0, 0]

    wanted = np.arange(12.0).reshape(3, 4)
    assert fill(x) == fill(wanted) and x[0, 0] == 7.0
    assert fill(x.T) == fill(wanted.T)
    with pytest.raises(numba.TypingError):
        tr.compile(lambda x: recurrence(x, 0.5))(tr.ones(3))
