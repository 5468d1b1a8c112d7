"""Random programs of loops, branches and updates in place, compiled: every call gives what single steps give."""

import numpy as np
from hypothesis import given, settings

import tenferro_runtime as tr
from random_loops import SHAPES, Recipe, recipes
from tenferro_runtime.running import fusion
from thorough import tries


@settings(max_examples=tries(6, 25))
@given(recipes(tuple(shape for shape in SHAPES if min(shape) > 2)))
def test_first_and_later_calls_agree_with_single_steps(recipe: Recipe) -> None:
    arrays = recipe.inputs()
    operands = [tr.asarray(a) for a in arrays]
    want = [np.asarray(x) for x in tr.trace(recipe.run, *operands).run(*operands)]
    compiled = tr.compile(recipe.run)
    tolerance = 1e-4 if recipe.dtype == "float32" else 1e-9
    for _ in range(2):
        made, numbers, rows = compiled(*operands)
        for got, value in zip([*made, *numbers, *rows], want, strict=True):
            assert (np.asarray(got).dtype, got.shape) == (value.dtype, value.shape)
            np.testing.assert_allclose(np.asarray(got), value, rtol=tolerance, atol=tolerance)
        fusion.wait()
    for operand, a in zip(operands, arrays, strict=True):
        np.testing.assert_array_equal(np.asarray(operand), a)
