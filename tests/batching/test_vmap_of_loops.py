"""`vmap` of random programs of loops, branches and updates whose indices and decisions differ between lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import tenferro_runtime as tr
from random_loops import SHAPES, Recipe, recipes
from thorough import tries

LANES = 3


def batch(recipe: Recipe) -> list[np.ndarray[Any, Any]]:
    """Arguments of lanes that go different ways."""
    *arrays, i = recipe.inputs()
    return [*[np.stack([x, x[::-1], np.roll(x, 1, axis=-1)]) for x in arrays], np.arange(LANES) + i]


def flat(outs: Any) -> list[Any]:
    made, numbers, rows = outs
    return [*made, *numbers, *rows]


def check(recipe: Recipe, axes: tuple[int | None, ...], transform: Any) -> None:
    batches = batch(recipe)
    given = [tr.asarray(x if axis == 0 else x[1]) for x, axis in zip(batches, axes, strict=True)]
    lanes = [[x[k] if axis == 0 else x for x, axis in zip(given, axes, strict=True)] for k in range(LANES)]
    program = tr.trace(lambda *xs: flat(recipe.run(*xs)), *lanes[0])  # where an index out of range is the nearest one
    with np.errstate(all="ignore"):
        alone = [[np.asarray(x) for x in program.run(*xs)] for xs in lanes]
        together = flat(transform(tr.vmap(recipe.run, axes))(*given))
    assume(all(np.all(np.abs(x.astype(np.complex128)) < 1e6) for outs in alone for x in outs if x.dtype.kind in "fc"))
    tolerance = 1e-4 if recipe.dtype == "float32" else 1e-9
    for i, x in enumerate(together):
        found = np.asarray(x)
        wanted = np.stack([outs[i] for outs in alone])
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axes", [(0, 0, 0, 0), (None, 0, None, 0), (None, None, None, 0)], ids=str)
@settings(max_examples=tries(8, 25))
@given(recipes(tuple(shape for shape in SHAPES if min(shape) > 1), depth=1))
def test_eager(axes: Any, recipe: Recipe) -> None:
    check(recipe, axes, lambda f: f)


@pytest.mark.parametrize("axes", [(0, 0, 0, 0), (0, 0, 0, None), (None, 0, None, 0)], ids=str)
@settings(max_examples=10)
@given(recipes(tuple(shape for shape in SHAPES if min(shape) > 2)))  # `cut` differs for smaller open extents
def test_compiled(axes: Any, recipe: Recipe) -> None:
    check(recipe, axes, tr.compile)
