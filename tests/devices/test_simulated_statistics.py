"""Statistics, counts and NumPy's other names stay on the simulated accelerator, and give there what they give here."""

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_tensor.functions import LATER
from tenferro_tensor_core import TenferroError
from vmap_calls import CALLS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
MODULES = (
    "averages", "binary", "closeness", "counting", "elementwise", "histograms", "nan_reductions", "numpy_forms",
    "packing", "predicates", "quantiles",
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_they_run_where_their_operands_are(module):
    names = LATER[module].split()
    calls = [c for key, c in CALLS.items() if key.removeprefix("tenferro_runtime.").partition(",")[0] in names]
    assert calls
    with simulated():
        for call, dtype in [(c, d) for c in calls for d in ("float64", "complex128")]:
            xs = [tr.asarray(make(np.dtype(dtype))) for make in call.operands]
            try:
                wanted = tr.tree_leaves(call.f(*xs))
            except TenferroError:
                continue  # not for this dtype
            found = tr.tree_leaves(call.f(*[x.to_device("sim:2") for x in xs]))
            for x, y in zip(found, wanted, strict=True):
                assert str(x.device) == "sim:2"
                np.testing.assert_allclose(x.to_device("cpu:0").numpy(), y.numpy(), rtol=1e-9, atol=1e-12)
