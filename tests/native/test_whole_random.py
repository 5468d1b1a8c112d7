"""Random loop functions: machine code against the interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native_kernels import FUNCTIONS
from random_nests import EDGE, RandomLoops
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import verify
from thorough import tries
from whole_functions import Native

pytestmark = FUNCTIONS


def require_agreement(seed, level, **machine):
    made = RandomLoops(seed)
    f = made.function()
    verify(f)
    rng = np.random.default_rng(seed)
    shape = tuple(made.values[k] + EDGE for k in "nm")
    arrays = [rng.integers(0, 50, shape).astype(b.dtype) for b in f.inputs]
    want = interpret(f, arrays, list(made.values.values()))
    got = Native(f, level, **machine)(*arrays, sizes=made.values)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12 if x.dtype.itemsize == 8 else 1e-5, err_msg=f"{seed=}")


@pytest.mark.parametrize("level", [0, 1])
@settings(max_examples=tries(10, 60), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_random_functions_do_what_the_interpreter_does(level, seed):
    require_agreement(seed, level)


@settings(max_examples=tries(10, 60), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_random_functions_with_stores_past_the_caches(seed):
    require_agreement(seed, 1, cache_bytes=1)
