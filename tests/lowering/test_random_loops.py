"""Random programs of loops, branches and updates in place: lowered, they give what they give step by step."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tenferro_runtime as tr
from random_loops import SHAPES, Recipe, recipes
from tenferro_runtime import Program
from tenferro_runtime.lowering import _reductions, _values, lower
from tenferro_tensor import Spec
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import plan_arena, verify
from tenferro_tensor_core import ShapeError, dim
from thorough import tries

FEW = 3
"""Numbers that live in registers; more than a few need much larger arrays to see memory at work."""


@pytest.fixture(scope="module", params=[FEW, _values.REGISTERS_MAX_ELEMENTS])
def most_numbers(request: pytest.FixtureRequest) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for module in (_values, _reductions):
            patch.setattr(module, "REGISTERS_MAX_ELEMENTS", request.param)
        yield


def same(got: list[np.ndarray[Any, Any]], want: Any, dtype: str) -> None:
    tolerance = 1e-4 if dtype == "float32" else 1e-9
    for a, b in zip(got, map(np.asarray, want), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def check(program: Program, arrays: list[np.ndarray[Any, Any]], sizes: tuple[int, ...], dtype: str) -> None:
    with np.errstate(all="ignore"):
        want = program.run(*map(tr.asarray, arrays))
    function = verify(lower(program))
    same(interpret(function, arrays, sizes, plan_arena(function)), want, dtype)


@settings(max_examples=tries(20, 150))
@given(recipes())
def test_lowered_programs_mean_what_they_mean_step_by_step(most_numbers: None, recipe: Recipe) -> None:
    arrays = recipe.inputs()
    check(tr.trace(recipe.run, *map(tr.asarray, arrays)), arrays, (), recipe.dtype)


@settings(max_examples=tries(8, 60))
@given(recipes(tuple(shape for shape in SHAPES if min(shape) > 2)))
def test_with_open_sizes(recipe: Recipe) -> None:
    arrays = recipe.inputs()
    names = "nm"[: len(recipe.shape)] if len(set(recipe.shape)) == len(recipe.shape) else "nn"
    dims = tuple([dim(name) for name in names])
    spec, index = Spec(dims, arrays[0].dtype), Spec((), arrays[3].dtype)
    sizes = dict(zip(names, recipe.shape, strict=True))
    program = tr.trace(recipe.run, spec, spec, spec, index, examples=sizes)
    check(program, arrays, tuple(sizes.values()), recipe.dtype)
    larger = {name: n + 3 for name, n in sizes.items()}
    other = recipe._replace(shape=tuple([larger[name] for name in names])).inputs()
    try:
        check(program, other, tuple(larger.values()), recipe.dtype)
    except ShapeError as error:
        assert "guard" in str(error) or "needs" in str(error)
