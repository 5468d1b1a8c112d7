"""Sums and shares of exponentials, and the logistic function, of complex elements."""

import numpy as np
import pytest
from scipy import special

import tenferro_ad as ad
import tenferro_runtime as tr

FUNCTIONS = {"logsumexp": tr.logsumexp, "softmax": tr.softmax, "log_softmax": tr.log_softmax, "sigmoid": tr.sigmoid}


def elements(scale=1.0, dtype=np.complex128):
    rng = np.random.default_rng(5)
    return (scale * (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)))).astype(dtype)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_is_the_principal_logarithm(axis, keepdims):
    z = elements(1000.0)
    expected = special.logsumexp(z, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(tr.logsumexp(z, axis, keepdims=keepdims).numpy(), expected, rtol=1e-13)


def test_shares_sum_to_one_and_are_exponentials_of_their_logarithms():
    z = elements(100.0)
    shares = tr.softmax(z, axis=0)
    np.testing.assert_allclose(tr.sum(shares, axis=0).numpy(), np.ones(4), atol=1e-13)
    np.testing.assert_allclose(tr.exp(tr.log_softmax(z, axis=0)).numpy(), shares.numpy(), rtol=1e-12, atol=1e-14)


def test_logistic_function_does_not_overflow():
    z = np.array([1000 + 1j, -1000 + 1j, 0.3 - 0.4j])
    expected = [1.0, 0.0, 1 / (1 + np.exp(-z[2]))]
    np.testing.assert_allclose(tr.sigmoid(z).numpy(), expected, rtol=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_and_programs(name):
    f, z = FUNCTIONS[name], elements()
    ad.check_grads(f, (z,), order=2)
    np.testing.assert_allclose(tr.compile(f)(tr.asarray(z)).numpy(), f(z).numpy(), rtol=1e-15)
    assert f(tr.asarray(elements(dtype=np.complex64))).dtype == np.complex64
