"""Convolution by spectra, at once and in blocks; chirp transforms, analytic signals, Hankel transforms and lengths."""

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import tenferro_fft as tf
import tenferro_runtime as tr
from tenferro_ad import check_grads
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, ShapeError, UnsupportedError

OPEN = tr.Spec((tr.dim("n"),), tr.float64)
RNG = np.random.default_rng(5)
SHAPES = [
    ((5,), (3,), None),
    ((5,), (9,), None),
    ((300,), (7,), None),
    ((7,), (700,), None),
    ((4, 300), (3, 7), None),
    ((400, 6), (7, 2), None),
    ((2, 3, 200), (1, 3, 5), (2,)),
    ((2, 300, 200), (2, 7, 5), (1, -1)),
    ((3, 4), (3, 1), 0),
]


def close(got, want, tolerance=1e-11):
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("left", "right", "axes"), SHAPES)
def test_convolution(left, right, axes, mode, name):
    f = lambda x, y: getattr(tf, name)(x, y, mode=mode, axes=axes)
    real, y = RNG.standard_normal(left), RNG.standard_normal(right)
    for x in (real, real + 1j * RNG.standard_normal(left)):
        want = getattr(scipy.signal, name)(x, y, mode=mode, axes=axes)
        close(f(x, y), want)
    close(tr.compile(f)(x, y), want)
    close(f(x.astype("complex64"), y.astype("float32")), want.astype("complex64"), 1e-3)


@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
def test_derivatives_of_convolution(name):
    for x, y in ((RNG.standard_normal((2, 70)), RNG.standard_normal((2, 3))), (np.ones((2, 5)) * 1j, np.ones((2, 4)))):
        f = lambda x, y: getattr(tf, name)(x, y, mode="same", axes=1)
        check_grads(f, (x, y), order=2)
        batched = tr.vmap(lambda x, y: getattr(tf, name)(x, y, mode="same"))
        close(batched(x, y), f(x, y).numpy())


def test_chirps_and_bands():
    x = RNG.standard_normal((3, 17))
    for m in (None, 5, 30):
        close(tf.czt(x, m=m), scipy.signal.czt(x, m))
    spiral = {"w": 0.9 * np.exp(-0.2j), "a": 1.1 * np.exp(0.3j), "axis": 0}
    close(tf.czt(x, m=9, **spiral), scipy.signal.czt(x, 9, **spiral))
    check_grads(lambda x: tf.czt(x, m=9, **spiral), (x,))
    for fn, m, endpoint in ((0.5, None, False), ((0.2, 0.7), 31, True)):
        close(tf.zoom_fft(x, fn, m=m, endpoint=endpoint), scipy.signal.zoom_fft(x, fn, m, endpoint=endpoint))
    long = RNG.standard_normal(20011)  # a prime length whose squares are beyond what a float64 turn resolves
    np.testing.assert_allclose(tf.czt(long).numpy(), np.fft.fft(long), atol=1e-9)


@pytest.mark.parametrize("n", [None, 8, 9])
def test_analytic_signals(n):
    x = RNG.standard_normal((3, 17))
    close(tf.hilbert(x, n=n), scipy.signal.hilbert(x, n))
    close(tr.compile(tf.hilbert)(x), scipy.signal.hilbert(x))
    check_grads(lambda x: tf.hilbert(x, n=n), (x,))


@pytest.mark.parametrize(("dln", "mu", "offset", "bias"), [(0.1, 1.0, 0.0, 0.0), (0.05, 0.5, 0.3, 0.2)])
@pytest.mark.parametrize("n", [1, 7, 8])
def test_hankel_transforms(n, dln, mu, offset, bias):
    x = RNG.standard_normal((2, n))
    close(tf.fht(x, dln, mu, offset, bias), scipy.fft.fht(x, dln, mu, offset, bias))
    close(tr.compile(lambda x: tf.fht(x, dln, mu, offset, bias))(x), scipy.fft.fht(x, dln, mu, offset, bias))
    close(tf.ifht(tf.fht(x, dln, mu, offset, bias), dln, mu, offset, bias), x)
    assert tf.fht(x.astype("float32"), dln, mu, offset, bias).dtype == np.float32
    assert tf.fhtoffset(dln, mu, offset, bias) == pytest.approx(scipy.fft.fhtoffset(dln, mu, offset, bias), rel=1e-12)
    check_grads(lambda x: tf.fht(x, dln, mu, offset, bias), (x,))


def test_fast_lengths():
    for n in [*range(1, 600), 10**6 + 3, 2**40 + 1]:
        for real in (False, True):
            assert tf.next_fast_len(n, real=real) == scipy.fft.next_fast_len(n, real), n
            below = tf.prev_fast_len(n, real=real)
            assert below <= n
            assert below == n or tf.next_fast_len(below + 1, real=real) > n


def test_workers_are_a_scope():
    x = RNG.standard_normal((8, 64))
    before = tf.get_workers()
    with tf.set_workers(2):
        assert tf.get_workers() == 2
        close(tf.dct(x), scipy.fft.dct(x))
    assert tf.get_workers() == before


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: tf.fftconvolve(np.ones(3), np.ones((1, 3))), ShapeError, "equally many axes"),
        (lambda: tf.fftconvolve(np.ones((3, 2)), np.ones((3, 3)), axes=0), ShapeError, "axis 1 of shapes"),
        (lambda: tf.fftconvolve(np.ones(3), np.ones(0)), ShapeError, "needs elements along axis 0"),
        (lambda: tf.oaconvolve(np.ones((3, 2)), np.ones((2, 3)), mode="valid"), ShapeError, "one operand"),
        (lambda: tf.fftconvolve(np.ones(3), np.ones(3), mode="most"), ArgumentError, "got 'most'"),  # type: ignore[arg-type]
        (lambda: tf.fftconvolve(np.ones(3), np.ones(3), axes=1), AxisError, "axes must be distinct"),
        (lambda: tf.czt(np.ones(3), w=0), ArgumentError, "other than 0 as w"),
        (lambda: tf.zoom_fft(np.ones(3), 1.0, m=1, endpoint=True), ArgumentError, "at least 2 frequencies"),
        (lambda: tf.hilbert(np.ones(3, complex)), DTypeError, "takes a real signal"),
        (lambda: tf.fht(np.ones(4, complex), 0.1, 1.0), DTypeError, "takes real samples"),
        (lambda: tf.fht(np.ones(4), 0.0, 1.0), ArgumentError, "nonzero dln"),
        (lambda: tf.fht(np.ones(4), 0.1, 0.0, bias=-1.0), ArgumentError, "fht is singular .*change the bias"),
        (lambda: tr.trace(lambda x: tf.fht(x, 0.1, 1.0), OPEN), UnsupportedError, "known number of samples"),
        (lambda: tr.trace(tf.czt, OPEN), UnsupportedError, "known number of points"),
        (lambda: tf.next_fast_len(0), ArgumentError, "a positive number of points"),
        (lambda: tf.set_workers(0).__enter__(), ArgumentError, "set_workers takes a number of threads, got 0"),
    ],
)
def test_mistakes_are_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
