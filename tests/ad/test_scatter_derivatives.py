"""Derivatives of `scatter` in every layout: windows, several indexed axes, repeated and dropped positions.

Arrays much larger than their updates take another path: the updates that survive are found by sorting.
"""

from typing import Any

import numpy as np
import pytest

from rule_checks import check_derivatives
from tenferro_ad import grad, jvp
from tenferro_tensor import catalog as c
from tenferro_tensor import tensor

LAYOUTS: dict[str, tuple[tuple[int, ...], Any, tuple[int, ...], dict[str, tuple[int, ...]]]] = {
    # name: shape of the array, index vectors, shape of the updates, dimension numbers
    "two indexed axes": (
        (5, 4),
        [[3, 1], [3, 1], [4, 3], [5, 0], [-1, 2], [0, 1]],
        (6,),
        {"update_window_dims": (), "inserted_dims": (0, 1), "scatter_dims": (0, 1)},
    ),
    "two indexed axes, large": (
        (90, 70),
        [[3, 1], [3, 1], [89, 69], [90, 0], [-1, 2], [1, 3], [3, 2]],
        (7,),
        {"update_window_dims": (), "inserted_dims": (0, 1), "scatter_dims": (0, 1)},
    ),
    "overlapping windows, large": (
        (60, 8, 20),
        [[2, 5], [3, 4], [2, 5], [59, 0]],
        (4, 3, 2),
        {"update_window_dims": (1, 2), "inserted_dims": (1,), "scatter_dims": (0, 2)},
    ),
    "the last axis, windows first, large": (
        (3, 2, 900),
        [[7], [7], [899], [900]],
        (3, 2, 4),
        {"update_window_dims": (0, 1), "inserted_dims": (2,), "scatter_dims": (2,)},
    ),
}


def scattering(name: str, mode: str) -> Any:
    _, indices, _, numbers = LAYOUTS[name]
    at = tensor(np.asarray(indices, dtype=np.int64))
    return lambda x, u: c.scatter(x, at, u, **numbers, mode=mode)


@pytest.mark.parametrize("mode", ["set", "add", "mul", "min", "max"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_both_modes_agree_with_differences(name: str, mode: str) -> None:
    shape, _, updates, _ = LAYOUTS[name]
    rng = np.random.default_rng(3)
    x, u = rng.permuted(np.arange(np.prod(shape)) * 0.01).reshape(shape), rng.normal(size=updates)
    check_derivatives(scattering(name, mode), [x, u + 20.0], order=1)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_last_update_of_a_position_has_the_whole_derivative(name: str) -> None:
    """Scattering the numbers of the updates shows which of them survive."""
    shape, _, updates, _ = LAYOUTS[name]
    numbers = 1.0 + np.arange(np.prod(updates)).reshape(updates)
    survivors = np.asarray(scattering(name, "set")(tensor(np.zeros(shape)), tensor(numbers)).data)
    slopes = grad(
        lambda u: c.reduce_sum(scattering(name, "set")(tensor(np.zeros(shape)), u), axes=(*range(len(shape)),))
    )
    assert np.array_equal(np.asarray(slopes(tensor(numbers)).data), np.isin(numbers, survivors).astype(float))


def test_an_update_without_a_tangent_has_none() -> None:
    f = scattering("two indexed axes", "set")
    x, u = tensor(np.zeros((5, 4))), tensor(np.ones(6))
    assert np.asarray(jvp(lambda x: f(x, u), (x,), (tensor(np.ones((5, 4))),))[1].data).sum() == 20 - 3
