"""Functions with NumPy's names on the simulated accelerator: the results are there, and those of NumPy."""

import warnings

import numpy as np
import pytest

import tenferro_runtime as tr
from numpy_calls import CALLS
from simulated.installed import simulated

NEW_ARRAYS = ("ediff1d ends", "interp of integers", "select broadcast", "tri")
"""Calls that make arrays in main memory, which do not meet those on a device."""
KNOWN_ELEMENTS = ("polydiv exact", "polydiv rest", "polymul zeros")
"""Calls whose result is shorter where the elements can be seen."""


@pytest.mark.parametrize(
    "name", [n for n, c in CALLS.items() if c.operands and not n.startswith((*NEW_ARRAYS, *KNOWN_ELEMENTS))]
)
def test_on_the_simulated_device(name):
    call = CALLS[name]
    xs = call.arrays(call.dtypes[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = tr.tree_leaves(call.f(np, *xs))
    with simulated():
        found = tr.tree_leaves(call.f(tr, *[tr.asarray(x).to_device("sim:2") for x in xs]))
        for x, y in zip(found, wanted, strict=True):
            assert x.shape == np.shape(y)
            np.testing.assert_allclose(np.asarray(x.to_device("cpu:0")), y, rtol=1e-9, atol=1e-9)
