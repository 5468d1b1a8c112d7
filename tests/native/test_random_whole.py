"""Random programs of loops, branches and updates in place: native functions give what single steps give."""

import numpy as np
import pytest
from hypothesis import given, settings

import tenferro_runtime as tr
from random_loops import Recipe, recipes
from tenferro_cpu.native import available
from tenferro_runtime.lowering import _reductions, _values, lower
from thorough import tries
from whole_functions import Native

pytestmark = pytest.mark.skipif(not available(), reason="no machine code here")


@pytest.fixture(scope="module", params=[3, _values.REGISTERS_MAX_ELEMENTS], autouse=True)
def most_numbers(request):
    """Fewer numbers in registers, so that small arrays are in memory."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (_values, _reductions):
            patch.setattr(module, "REGISTERS_MAX_ELEMENTS", request.param)
        yield


@settings(max_examples=tries(16, 100))
@given(recipes())
def test_native_functions_mean_what_programs_mean(recipe: Recipe):
    arrays = recipe.inputs()
    program = tr.trace(recipe.run, *map(tr.asarray, arrays))
    native = Native(lower(program))
    if native.rendered.calls:
        return  # kernels for whole arrays are called by the entry
    with np.errstate(all="ignore"):
        want = program.run(*map(tr.asarray, arrays))
    tolerance = 1e-4 if recipe.dtype == "float32" else 1e-9
    for got, value in zip(native(*arrays), map(np.asarray, want), strict=True):
        assert (got.dtype, got.shape) == (value.dtype, value.shape)
        np.testing.assert_allclose(got, value, rtol=tolerance, atol=tolerance)
