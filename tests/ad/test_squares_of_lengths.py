"""Squares of lengths at 0 in transforms other than Jacobians; values keep their bits. See also `critical_points`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import (
    checkpoint,
    grad,
    hessian,
    hvp,
    jacfwd,
    jvp,
    laplacian,
    linearize,
    sparse_hessian,
    taylor,
    value_and_grad,
)

Function = Callable[[Any], Any]
SQUARES: dict[str, Function] = {
    "norm": lambda v: tr.linalg.norm(v) ** 2,
    "abs": lambda v: tr.sum(tr.abs(v) ** 2),
    "hypot": lambda v: tr.hypot(v[0], v[1]) ** 2,
    "sqrt": lambda v: tr.sqrt(tr.sum(v * v)) ** 2,
}


@pytest.mark.parametrize("name", SQUARES)
def test_every_transform_finds_the_second_derivative(name: str) -> None:
    with np.errstate(all="ignore"):  # the slope of sqrt at 0 is computed, and not used
        _check(SQUARES[name])


def _check(f: Function) -> None:
    zero, one = tr.zeros(2), tr.ones(2)
    twice = 2.0 * np.eye(2)
    np.testing.assert_array_equal(np.asarray(hvp(f, (zero,), (one,))), [2.0, 2.0])
    np.testing.assert_array_equal(np.asarray(linearize(grad(f), zero)[1](one)), [2.0, 2.0])
    np.testing.assert_array_equal(sparse_hessian(f)(zero).toarray(), twice)
    np.testing.assert_array_equal(np.asarray(hessian(checkpoint(f))(zero)), twice)
    np.testing.assert_array_equal(np.asarray(tr.compile(hessian(f), deterministic=True)(zero)), twice)
    np.testing.assert_array_equal(np.asarray(tr.vmap(hessian(f))(tr.zeros((3, 2)))), [twice] * 3)
    assert float(laplacian(f)(zero)) == 4.0
    assert [float(x) for x in taylor(f, (zero,), ((one, tr.zeros(2)),))[1]] == [0.0, 4.0]


def test_the_fourth_derivative_of_a_fourth_power() -> None:
    f: Function = lambda v: tr.linalg.norm(v) ** 4
    for _ in range(4):
        f = jacfwd(f)
    assert float(f(tr.zeros(2))[0, 0, 0, 0]) == 24.0


def test_values_and_gradients_keep_their_bits() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 3)) * 10.0 ** np.arange(-24, 26)[:, None]
    rows[7] = 0.0
    f: Function = lambda v: tr.linalg.norm(v) ** 2
    for row in map(tr.asarray, rows):
        value, slope = value_and_grad(f)(row)
        nested = jvp(lambda v: value_and_grad(f)(v), (row,), (tr.ones(3),))[0]
        assert float(nested[0]) == float(value)
        np.testing.assert_array_equal(np.asarray(nested[1]), np.asarray(slope))


def test_other_products_of_lengths_are_left_alone() -> None:
    x, y = tr.asarray([0.0, 0.0]), tr.asarray([3.0, 4.0])
    by_other = hessian(lambda v: tr.linalg.norm(v) * tr.linalg.norm(y))(x)
    np.testing.assert_array_equal(np.asarray(by_other), np.zeros((2, 2)))
    assert float(hessian(_assigned)(tr.zeros(2))[0, 0]) == 0.0


def _assigned(v: Any) -> Any:
    sizes = tr.abs(v)
    sizes[0] = 0.0  # no longer the magnitude of v[0]
    return tr.sum(sizes * sizes)


def test_a_masked_length_contributes_nothing() -> None:
    def energy(x: Any) -> Any:
        r = tr.linalg.norm(x[:, None, :] - x[None, :, :], axis=-1)
        same = tr.eye(3, dtype=bool)
        return tr.sum(tr.where(same, 0.0, 1.0 / tr.where(same, 1.0, r) ** 2))

    x = tr.asarray(np.random.default_rng(1).standard_normal((3, 2)))
    for h in (hessian(energy), tr.compile(hessian(energy))):
        assert np.isfinite(np.asarray(h(x))).all()
