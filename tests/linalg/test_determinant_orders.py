"""Derivatives of determinants to order 4, at every rank, against the polynomial that a determinant is."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import numbers
from tenferro_ad import check_grads, grad, hessian, jvp

DTYPES = ("float64", "complex128")
ORDERS = (1, 2, 3, 4)


def _of_rank(n: int, rank: int, dtype: str) -> np.ndarray[Any, Any]:
    return numbers(n, (n, rank), dtype) @ numbers(n + 1, (rank, n), dtype)


def _polynomial(x: np.ndarray[Any, Any], along: list[np.ndarray[Any, Any]]) -> Any:
    """The mixed derivative of a determinant, which is linear in each row: every direction takes the place of one."""
    total: Any = 0
    for rows in permutations(range(len(x)), len(along)):
        m = x.copy()
        for row, d in zip(rows, along, strict=True):
            m[row] = d[row]
        total = total + np.linalg.det(m)
    return total


def _forward(f: Callable[[Any], Any], d: Any) -> Callable[[Any], Any]:
    return lambda x: jvp(f, (x,), (d,))[1]


def _reverse(f: Callable[[Any], Any], d: Any) -> Callable[[Any], Any]:
    return lambda x: tr.sum(tr.real(tr.conj(grad(f)(x)) * d))


MODES = {
    "forward": lambda i: _forward,
    "reverse": lambda i: _reverse,
    "forward over reverse": lambda i: _forward if i else _reverse,
    "alternating": lambda i: _reverse if i % 2 else _forward,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("n", "rank"), [(n, rank) for n in (1, 2, 3, 4) for rank in range(n + 1)] + [(5, 4), (5, 2)])
def test_directional_derivatives_are_those_of_the_polynomial(n: int, rank: int, mode: str, dtype: str) -> None:
    x, along = _of_rank(n, rank, dtype), [numbers(10 + i, (n, n), dtype) for i in range(len(ORDERS))]
    f: Callable[[Any], Any] = lambda v: tr.real(la.det(v))
    for i, d in enumerate(along):
        f = MODES[mode](i)(f, d)
        want = _polynomial(x, along[: i + 1]).real
        scale = max(1.0, abs(want))
        assert abs(float(f(tr.asarray(x))) - want) < 1e-11 * scale, i + 1
        if i == 2:
            assert abs(float(tr.compile(f)(tr.asarray(x))) - want) < 1e-11 * scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [3, 2, 1, 0])
def test_nested_differences(rank: int, dtype: str) -> None:
    """The third derivative against differences of the second."""
    x, d = _of_rank(3, rank, dtype), numbers(7, (3, 3), dtype)

    def second(v: Any) -> Any:
        return _forward(_reverse(lambda u: tr.real(la.det(u) * (1.0 - 0.5j)), d), d)(v)

    step = 1e-5
    for along in (d, numbers(8, (3, 3), dtype)):
        want = (float(second(tr.asarray(x + step * along))) - float(second(tr.asarray(x - step * along)))) / (2 * step)
        for mode in (_forward, _reverse):
            np.testing.assert_allclose(float(mode(second, along)(tr.asarray(x))), want, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_of_regular_and_singular_matrices(dtype: str) -> None:
    x = np.stack([_of_rank(3, rank, dtype) for rank in (3, 2, 1)])
    d = numbers(4, x.shape, dtype)
    f = lambda v: tr.sum(tr.real(la.det(v)))
    for i in range(3):
        f = (_reverse if i % 2 else _forward)(f, d)
    want = sum(_polynomial(m, [e] * 3).real for m, e in zip(x, d, strict=True))
    np.testing.assert_allclose(float(f(tr.asarray(x))), want, rtol=1e-11)


def test_second_and_third_derivatives_as_arrays() -> None:
    x = np.diag([2.0, 0.0, 0.0])
    second = np.asarray(hessian(la.det)(tr.asarray(x)))
    third = np.asarray(tr.compile(lambda v: jvp(hessian(la.det), (v,), (tr.eye(3),))[1])(tr.asarray(x)))
    want = np.zeros((3, 3, 3, 3))
    for a, b in ((1, 2), (2, 1)):
        want[a, a, b, b] += 2.0
        want[a, b, b, a] -= 2.0
    np.testing.assert_allclose(second, want, atol=1e-14)
    trace = np.zeros((3, 3, 3, 3))
    for a in range(3):
        for b in range(3):
            if a != b:
                trace[a, a, b, b] += 1.0
                trace[a, b, b, a] -= 1.0
    np.testing.assert_allclose(third, trace, atol=1e-14)


@pytest.mark.parametrize("rank", [4, 3, 2])
def test_both_sides_of_the_rule_agree(rank: int) -> None:
    check_grads(lambda v: tr.sin(la.det(v)), (tr.asarray(_of_rank(4, rank, "float64")),), order=3)
