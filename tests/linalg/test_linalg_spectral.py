"""Functions of Hermitian matrices: exact at every spectrum, where the same thing written with eigh must refuse."""

import numpy as np
import pytest

import tenferro_linalg as la
import tenferro_runtime as tr
from linalg_checks import (
    adjoint,
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


def power(h, k):
    """A power of matrices by products."""
    out = h
    for _ in range(k - 1):
        out = la.matmul(out, h)
    return out


def polynomial(w):
    return w**5 - 2 * w**3 + w


def of_matrix(x):
    """The same function of the Hermitian part, by products."""
    h = (x + adjoint(x)) * 0.5
    return power(h, 5) - power(h, 3) * 2.0 + h


def along(f, order, modes):
    """A derivative of a function of a matrix along directions, in a sequence of modes."""

    def nested(x, vs):
        g = f
        for mode, v in zip(modes, vs, strict=True):
            if mode == "f":
                g = lambda y, g=g, v=v: jvp(g, (y,), (tensor(v),))[1]
            else:
                g = lambda y, g=g, v=v: inner(grad(g)(y), v)
        return g(x)

    return nested


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("spectrum", [*SPECTRA, (1, 1 + 1e-3, 1 + 1e-7, 2), (-1e-3, 0, 1e-3, 1, 1.01, 3), (2,)])
@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr", "fff", "ffr", "rrf", "rrr"])
def test_higher_derivatives_at_any_spectrum(modes, spectrum, dtype):
    """Equal to those of products of the matrix, which know nothing of eigenvalues."""
    x = hermitian(spectrum, dtype, 17)
    b = numbers(18, x.shape, dtype)
    vs = [numbers(19 + i, x.shape, dtype) for i in range(len(modes))]
    got = along(lambda y: inner(la.spectral_function(y, polynomial), b), len(modes), modes)(tensor(x), vs)
    expected = along(lambda y: inner(of_matrix(y), b), len(modes), modes)(tensor(x), vs)
    scale = max(np.abs(x).max(), 1) ** (5 - len(modes)) * 300
    assert float(got) == pytest.approx(float(expected), rel=1e-10, abs=1e-11 * scale)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("modes", ["rf", "rr", "ffr"])
@pytest.mark.parametrize("shape,values", [((3, 3), (1, 1, 2)), ((4, 2), (1, 1)), ((2, 3), (1, 0)), ((3, 3), (0, 0, 0))])
def test_higher_derivatives_of_singular_functions(shape, values, modes, dtype):
    x, b = with_values(shape, values, dtype, 23), numbers(24, shape, dtype)
    vs = [numbers(25 + i, shape, dtype) for i in range(len(modes))]

    def cube(y):
        return inner(la.matmul(la.matmul(y, adjoint(y)), y), b)

    got = along(lambda y: inner(la.singular_function(y, lambda s: s**3), b), len(modes), modes)(tensor(x), vs)
    assert float(got) == pytest.approx(float(along(cube, len(modes), modes)(tensor(x), vs)), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("small", [1e-1, 1e-3, 1e-5])
def test_a_function_that_is_rough_beside_large_eigenvalues(small):
    """The inverse of close small eigenvalues: groups are made by the size of the values themselves."""
    spectrum = (small, small, 1.5 * small, small * (1 + 1e-9), 1.0)
    x, v, b = hermitian(spectrum, "float64", 29), numbers(30, (5, 5)), numbers(31, (5, 5))
    v = (v + v.T) / 2
    f = lambda y: inner(la.spectral_function(y, lambda w: 1 / w), b)
    y = np.linalg.inv(x)
    second = 2 * (b * (y @ v @ y @ v @ y)).sum()
    assert float(along(f, 1, "r")(tensor(x), [v])) == pytest.approx(-(b * (y @ v @ y)).sum(), rel=1e-7)
    assert float(along(f, 2, "rf")(tensor(x), [v, v])) == pytest.approx(second, rel=1e-6)


@pytest.mark.parametrize("gap", [1e-1, 1e-2, 3e-3, 1e-4, 1e-6, 1e-9, 1e-13, 0])
@pytest.mark.parametrize("others", [(2.0, 3.0), (0.02, 1.0)])
@pytest.mark.parametrize("name", ["exp", "inverse"])
def test_the_accuracy_of_higher_derivatives_does_not_depend_on_the_gap(name, others, gap):
    """Against the power series and the solution of linear equations."""
    f, reference = {"exp": (fn.exp, exponential), "inverse": (lambda w: 1 / w, la.inv)}[name]
    first = others[0] / 2
    x, b = hermitian((first, first * (1 + gap), *others), "float64", 40), numbers(41, (4, 4))
    x = (x + x.T) / 2
    vs = [v + v.T for v in (numbers(42 + i, (4, 4)) for i in range(3))]
    for order, rtol in ((1, 1e-12), (2, 1e-10), (3, 1e-8)):
        got, expected = [
            float(along(lambda y, h=h: inner(h(y), b), order, "f" * order)(tensor(x), vs[:order]))
            for h in (lambda y: la.spectral_function(y, f), reference)
        ]
        assert got == pytest.approx(expected, rel=rtol)


def exponential(y):
    """The power series."""
    total = term = tensor(np.eye(4))
    for k in range(1, 40):
        term = la.matmul(term, y) * (1 / k)
        total = total + term
    return total


def test_higher_derivatives_of_a_stack_compiled_and_mapped():
    x = np.stack([hermitian(s, "float64", 32) for s in [(1, 1, 2), (1, 2, 4), (2, 2, 2)]])
    v, b = numbers(33, x.shape), numbers(34, x.shape[1:])
    one = lambda y, u: jvp(grad(lambda z: inner(la.spectral_function(z, polynomial), b)), (y,), (u,))[1]
    expected = np.stack([one(tensor(y), tensor(u))._concrete() for y, u in zip(x, v, strict=True)])
    for f in (tr.vmap(one), tr.compile(tr.vmap(one)), tr.vmap(tr.compile(one))):
        np.testing.assert_allclose(f(tensor(x), tensor(v))._concrete(), expected, atol=1e-11)
    whole = lambda z: inner(la.spectral_function(z, polynomial), np.stack([b] * 3))
    np.testing.assert_allclose(jvp(grad(whole), (tensor(x),), (tensor(v),))[1]._concrete(), expected, atol=1e-11)


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
@pytest.mark.parametrize("spectrum", [(1, 1, 2), (1, 2, 4), (0, 0, 0)])
def test_mixed_derivatives_by_matrix_and_parameters(spectrum, dtype):
    """``a w^3 + b^2 w^2`` against products of the matrix, for all pairs of arguments."""
    x, weights = hermitian(spectrum, dtype, 35), numbers(36, (3, 3), dtype)

    def of_eigenvalues(y, a, b):
        return inner(la.spectral_function(y, lambda w: a * w**3 + b * b * w * w), weights)

    def of_products(y, a, b):
        h = (y + adjoint(y)) * 0.5
        return inner(power(h, 3) * a + power(h, 2) * (b * b), weights)

    args = (tensor(x), tensor(0.7), tensor(-1.3))
    directions = (tensor(numbers(37, (3, 3), dtype)), tensor(0.4), tensor(0.9))
    for f in (lambda g: g, tr.compile):
        got, expected = [
            (
                f(jvp_of(h, directions))(*args),
                *f(grad(h, (0, 1, 2)))(*args),
                *f(lambda *xs, h=h: jvp(grad(h, (0, 1, 2)), xs, directions)[1])(*args),
                *f(grad(jvp_of(h, directions), (0, 1, 2)))(*args),
                *f(grad(lambda *xs, h=h: pair(grad(h, (0, 1, 2))(*xs), directions), (0, 1, 2)))(*args),
            )
            for h in (of_eigenvalues, of_products)
        ]
        for y, z in zip(got, expected, strict=True):
            np.testing.assert_allclose(y._concrete(), z._concrete(), rtol=1e-10, atol=1e-11)


def jvp_of(h, directions):
    return lambda *xs: jvp(h, xs, directions)[1]


def pair(gs, directions):
    return sum((inner(g, d._concrete()) for g, d in zip(gs, directions, strict=True)), 0.0)


def test_complex_parameters_and_lanes_of_parameters():
    x, weights = hermitian((1, 1, 2), "complex128", 38), numbers(39, (3, 3), "complex128")
    f = lambda t: inner(la.spectral_function(tensor(x), lambda w: fn.exp(w * t)), weights)
    g = lambda t: inner(
        la.matmul(la.spectral_function(tensor(x), lambda w: w * fn.exp(w * t)), tensor(np.eye(3))), weights
    )
    t = tensor(0.3 + 0.2j)
    assert float(jvp(f, (t,), (tensor(1.0 + 0j),))[1]) == pytest.approx(float(g(t)))
    both = lambda y, t: inner(la.spectral_function(y, lambda w: fn.exp(w * t)), weights)
    ts = tensor(np.array([0.3 + 0.2j, 0.1, -1j]))
    found = tr.vmap(lambda t: grad(both, (0, 1))(tensor(x), t))(ts)
    for k in range(3):
        for y, z in zip(found, grad(both, (0, 1))(tensor(x), ts[k]), strict=True):
            np.testing.assert_allclose(y[k]._concrete(), z._concrete(), atol=1e-12)


def test_parameters_are_scalars():
    with pytest.raises(ShapeError, match="its parameters are scalars"):
        grad(lambda t: fn.sum(la.spectral_function(t, lambda w: w * t[0, 0] + fn.sum(w[:, None] * t[0], axis=1))))(
            tensor(np.eye(2))
        )


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
