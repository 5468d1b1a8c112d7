"""`detach` means the same on every kind of value: a constant of the differentiation, now or later."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, variable
from tenferro_tensor.identity import identity

X = tr.asarray([1.0, 2.0, 3.0])


def loss(x):
    return tr.sum(x.detach() * x)


@pytest.mark.parametrize(
    "way", [grad(loss), tr.compile(grad(loss)), grad(tr.compile(loss))], ids=["eager", "compiled gradient", "compiled"]
)
def test_a_detached_factor_has_no_slope(way):
    np.testing.assert_array_equal(np.asarray(way(X)), np.asarray(X))


def test_forward_mode_and_variables():
    _, slope = jvp(loss, (X,), (tr.ones_like(X),))
    assert float(slope) == 6.0
    x = variable(X)
    assert (x.requires_grad, x.detach().requires_grad, X.requires_grad) == (True, False, False)
    assert identity(X.detach()) == identity(X)
    loss(x).backward()
    np.testing.assert_array_equal(np.asarray(x.grad), np.asarray(X))
