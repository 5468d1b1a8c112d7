"""Infinite slopes at poles are by law, so the sweep does not warn of them; the forward run still does."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad

MASKED = {
    "sqrt": (lambda x: tr.where(x > 0, tr.sqrt(x), 0.0), [0.0, 0.25]),
    "power": (lambda x: tr.where(x > 0, x**0.5, 0.0), [0.0, 0.25]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", MASKED)
def test_a_masked_pole_is_silent_and_has_slope_zero(name):
    f, expected = MASKED[name]
    for _ in range(60):  # past the point where the rule is rendered
        g = grad(lambda x: tr.sum(f(x)))(tr.asarray([0.0, 4.0]))
        np.testing.assert_array_equal(np.asarray(g), expected)


def test_the_forward_run_keeps_numpys_warnings():
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        grad(lambda x: tr.sum(tr.log(x)))(tr.asarray([0.0]))
