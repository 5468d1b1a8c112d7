"""Matrices with chosen spectra, and checks of derivatives of scalar losses against central differences."""

import numpy as np

from tenferro_ad import grad, jvp
from tenferro_tensor import functions as fn
from tenferro_tensor import tensor

DTYPES = ("float32", "float64", "complex64", "complex128")


def numbers(seed, shape, dtype="float64"):
    """Standard normal numbers, complex ones in both parts."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def unitary(seed, n, dtype="float64"):
    """A random unitary (orthogonal for real dtypes)."""
    return np.linalg.qr(numbers(seed, (n, n), dtype))[0]


def hermitian(spectrum, dtype="float64", seed=None):
    """A Hermitian matrix with the given eigenvalues: diagonal, or rotated by a random unitary."""
    d = np.diag(np.asarray(spectrum, dtype))
    if seed is None:
        return d
    q = unitary(seed, len(d), dtype)
    return q @ d @ q.conj().T


def with_values(shape, values, dtype="float64", seed=None):
    """A matrix with the given singular values: diagonal, or between two random unitaries."""
    s = np.zeros(shape, dtype)
    np.fill_diagonal(s, values)
    if seed is None:
        return s
    return unitary(seed, shape[0], dtype) @ s @ unitary(seed + 1, shape[1], dtype)


def adjoint(x):
    """Conjugate transpose of any kind of value."""
    return fn.conj(fn.matrix_transpose(x)) if x.dtype.kind == "c" else fn.matrix_transpose(x)


def inner(x, b):
    """Re <b, x> for a fixed host array b."""
    return fn.sum(fn.real(fn.multiply(x, tensor(np.conj(b)))))


def real(x):
    """Real part, which for real values is the value."""
    return fn.real(x) if x.dtype.kind == "c" else x


def difference(f, x, v, h=1e-3):
    """Sixth-order central difference of a host-valued function along v."""
    one, two, three = (f(x + i * h * v) - f(x - i * h * v) for i in (1, 2, 3))
    return (45 * one - 9 * two + three) / (60 * h)


def value(f, x):
    """The loss as a Python float."""
    return float(f(tensor(x)))


def gradient(f, x):
    """The gradient on the host."""
    return grad(f)(tensor(x))._concrete()


def pushed(f, x, v):
    """The directional derivative by forward mode, on the host."""
    return jvp(f, (tensor(x),), (tensor(v),))[1]._concrete()


def assert_gradient(f, x, v, rtol=1e-7):
    """Reverse mode agrees with central differences along v."""
    expected = difference(lambda y: value(f, y), x, v)
    g = gradient(f, x)
    assert np.isfinite(g).all()
    floor = 1e-3 * max(float(np.linalg.norm(g) * np.linalg.norm(v)), 1e-3)
    assert abs((g.conj() * v).real.sum() - expected) <= rtol * max(abs(expected), floor)


def assert_pushed(f, x, v, rtol=1e-7):
    """Forward mode agrees with central differences along v."""
    expected = difference(lambda y: value(f, y), x, v)
    assert abs(pushed(f, x, v) - expected) <= rtol * max(abs(expected), 1e-3 * np.linalg.norm(v))


def assert_second_order(f, x, v, rtol=1e-6):
    """Forward and reverse over reverse agree with central differences of the gradient along v."""
    expected = difference(lambda y: gradient(f, y), x, v)
    over_forward = jvp(grad(f), (tensor(x),), (tensor(v),))[1]._concrete()
    over_reverse = grad(lambda y: inner(grad(f)(y), v))(tensor(x))._concrete()
    scale = max(np.linalg.norm(expected), 1e-3)
    assert np.linalg.norm(over_forward - expected) <= rtol * scale
    assert np.linalg.norm(over_reverse - expected) <= rtol * scale


def assert_derivatives(f, x, v, rtol=1e-7):
    """First order in both modes and second order in two."""
    assert_gradient(f, x, v, rtol)
    assert_pushed(f, x, v, rtol)
    assert_second_order(f, x, v, 10 * rtol)


def total_of(f):
    """A real number that weights all elements of all results of `f` differently, whatever their phases."""

    def total(x):
        out = 0.0
        for y in f(x):
            weights = fn.reshape(fn.linspace(0.5, 1.0, y.size), y.shape)
            out = out + fn.sum(weights * fn.real(y * fn.conj(y)))
        return out

    return total
