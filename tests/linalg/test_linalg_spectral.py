"""Functions of Hermitian matrices: exact at every spectrum, where the same thing written with eigh must refuse."""

import numpy as np
import pytest

import tenferro_linalg as la
from linalg_checks import (
    assert_derivatives,
    assert_gradient,
    assert_pushed,
    difference,
    gradient,
    hermitian,
    inner,
    numbers,
    real,
    value,
    with_values,
)
from tenferro_ad import grad, jvp
from tenferro_tensor import functions as fn
from tenferro_tensor import tensor
from tenferro_tensor_core import ShapeError

KINDS = ["float64", "complex128"]
SPECTRA = [(1, 1, 2), (4, 1, 1), (2, 2, 2, 2, 2), (1, 1, 1, 3, 3, 5), (0, 0, 0), (1, 2, 4)]
MATRICES = [
    ((4, 4), (2, 2, 2, 1)),
    ((4, 4), (3, 1, 0, 0)),
    ((4, 4), (3, 2, 1, 0)),
    ((6, 4), (2, 2, 0, 0)),
    ((3, 5), (2, 1, 1)),
    ((3, 3), (0, 0, 0)),
    ((4, 6), (0, 0, 0, 0)),
    ((4, 4), (1, 1, 1, 1)),
]
FUNCTIONS = {"sin": fn.sin, "exp": fn.exp, "phase": lambda w: fn.exp(w * 1j), "poly": lambda w: w * w * w - 2 * w}


def loss_of(f, n, dtype, seed=1):
    b = numbers(seed, (n, n), "complex128" if f is FUNCTIONS["phase"] else dtype)
    return lambda x: inner(la.spectral_function(x, f), b)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_derivatives_are_exact_at_multiplets(name, spectrum, seed, dtype):
    x = hermitian(spectrum, dtype, seed)
    f = loss_of(FUNCTIONS[name], len(x), dtype)
    assert_gradient(f, x, numbers(2, x.shape, dtype))
    assert_pushed(f, x, numbers(2, x.shape, dtype))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
def test_second_derivatives_at_distinct_eigenvalues(shape, name, dtype):
    b = numbers(3, shape, "complex128" if name == "phase" else dtype)
    f = lambda x: inner(la.spectral_function(x, FUNCTIONS[name]), b)
    assert_derivatives(f, numbers(4, shape, dtype), numbers(5, shape, dtype), rtol=1e-6)


def test_second_derivatives_at_a_multiplet():
    f = loss_of(fn.sin, 3, "float64")
    x, v = np.diag([1.0, 1.0, 2.0]), numbers(6, (3, 3))
    expected = difference(lambda y: gradient(f, y), x, v)
    np.testing.assert_allclose(jvp(grad(f), (tensor(x),), (tensor(v),))[1]._concrete(), expected, atol=1e-8)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 0])
def test_accuracy_does_not_depend_on_the_gap(gap):
    x, v = hermitian((1, 1 + gap, 2, 3), "float64", 7), numbers(8, (4, 4))
    f = loss_of(fn.sin, 4, "float64")
    expected = difference(lambda y: value(f, y), x, v, h=2e-3)
    assert (gradient(f, x) * v).sum() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_values(dtype):
    x = numbers(9, (2, 4, 4), dtype)
    h = x + x.conj().swapaxes(-1, -2)
    got = la.spectral_function(tensor(h), lambda w: w * w)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got._concrete(), h @ h, rtol=1e-3, atol=1e-3)
    assert la.spectral_function(tensor(h[:0]), fn.sin).shape == (0, 4, 4)


def test_the_function_must_be_element_wise():
    with pytest.raises(ShapeError, match="element by element"):
        la.spectral_function(np.eye(2), lambda w: fn.sum(w))


def test_captured_parameters_are_differentiated():
    x = tensor(np.diag([1.0, 1.0, 2.0]))
    f = lambda t: fn.sum(real(la.spectral_function(x, lambda w: fn.exp(w * t))))
    assert float(grad(f)(tensor(0.5))) == pytest.approx(2 * np.exp(0.5) + 2 * np.exp(1.0))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("seed", [None, 10])
@pytest.mark.parametrize("f", [lambda s: s**3, fn.sin], ids=["cube", "sin"])
@pytest.mark.parametrize("shape,values", MATRICES)
def test_singular_functions_are_exact_where_the_product_of_factors_is_refused(shape, values, f, seed, dtype):
    """tr(B U s^3 V) at equal and zero values."""
    x, v, b = with_values(shape, values, dtype, seed), numbers(11, shape, dtype), numbers(12, shape, dtype)
    loss = lambda y: inner(la.singular_function(y, f), b)
    assert_gradient(loss, x, v)
    assert_pushed(loss, x, v)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 4)])
def test_singular_functions_have_the_values_of_the_product(shape, dtype):
    x = numbers(13, shape, dtype)
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    got = la.singular_function(tensor(x), lambda t: fn.sin(t) + t * t)._concrete()
    np.testing.assert_allclose(got, (u * np.sin(s)[..., None, :]) @ vh, atol=1e-12)
    loss = lambda y: inner(la.singular_function(y, fn.sin), numbers(14, shape, dtype))
    assert_gradient(loss, x, numbers(15, shape, dtype))
