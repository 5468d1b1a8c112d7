"""Array functions are differentiable to second order, in both modes, because they are compositions of primitives."""

import numpy as np
import pytest

import tenferro_runtime as tr
from array_cases import CASES, matrix
from tenferro_ad import check_grads, grad


@pytest.mark.parametrize("name", sorted(n for n, c in CASES.items() if c.smooth))
def test_derivatives(name):
    check_grads(CASES[name].f, (matrix(),), order=2)


def test_data_dependent_sizes_pass_derivatives():
    x = tr.asarray([3.0, 1.0, 3.0, -2.0])
    assert grad(lambda v: tr.sum(v[v > 0] ** 2))(x).tolist() == [6.0, 2.0, 6.0, 0.0]
    assert grad(lambda v: tr.sum(tr.unique_values(v) ** 2))(x).tolist() == [6.0, 2.0, 0.0, -4.0]
    assert grad(lambda v: tr.sum(v[tr.nonzero(v > 1)] * 2))(x).tolist() == [2.0, 0.0, 2.0, 0.0]


def test_nested_sequences_keep_derivatives():
    g = grad(lambda v: tr.sum(tr.asarray([[v[0], 2.0], [v[1] * v[0], v[1]]]) ** 2))(tr.asarray([2.0, 3.0]))
    np.testing.assert_allclose(g.numpy(), [2 * 2 + 2 * 6 * 3, 2 * 6 * 2 + 2 * 3])


def test_bounds_of_linspace_and_fill_values_pass_derivatives():
    assert float(grad(lambda a: tr.sum(tr.linspace(a, 1.0, 3)))(tr.asarray(0.0))) == 1.5
    assert float(grad(lambda a: tr.sum(tr.full((2, 3), a)))(tr.asarray(0.0))) == 6.0
