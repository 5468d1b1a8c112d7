"""Random programs of loops, branches and updates that share values: all tiers agree with calls on concrete arrays."""

import numpy as np
import pytest
from hypothesis import given, settings

import tenferro_runtime as tr
from shared_values import Shared, shared_programs
from tenferro_tensor.checked import CHECKED_VARIABLE
from thorough import tries
from tiers import agree

X = tr.asarray(np.random.default_rng(0).uniform(-1.0, 1.0, (5, 5)))


@settings(max_examples=tries(10, 1000))
@given(shared_programs())
def test_tiers_agree(f: Shared) -> None:
    agree(f.run, [X])


@settings(max_examples=tries(5, 300))
@given(shared_programs())
def test_tiers_agree_where_memory_that_may_be_reused_holds_nan(f: Shared) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECKED_VARIABLE, "1")
        agree(f.run, [X])
