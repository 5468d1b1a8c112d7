"""Derivatives of the transforms: both modes, first and second order, even and odd lengths, cut and padded."""

import numpy as np
import pytest

import tenferro_fft as tf
import tenferro_runtime as tr
from tenferro_ad import check_grads, grad


def signal(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return tr.asarray(x.astype(dtype))


ANY = ["float32", "float64", "complex64", "complex128"]
CASES = {
    tf.fft: ANY,
    tf.ifft: ANY,
    tf.irfft: ANY,
    tf.hfft: ANY,
    tf.rfft: ["float32", "float64"],
    tf.ihfft: ["float32", "float64"],
}


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 2, 4, 7])
@pytest.mark.parametrize(("f", "dtype"), [(f, d) for f, ds in CASES.items() for d in ds])
def test_one_dimensional(f, dtype, n, norm):
    order = 2 if (n, norm) == (4, "ortho") and dtype in ("float64", "complex128") else 1
    # A product after the transform, so that there is a second derivative to speak of.
    check_grads(lambda x: (y := f(x, n=n, norm=norm)) * y, (signal((2, 5), dtype),), order=order)


@pytest.mark.parametrize("f", [tf.fftn, tf.ifftn, tf.rfftn, tf.irfftn])
@pytest.mark.parametrize(("s", "axes"), [(None, None), ((3, 5), (1, 0)), ((2,), (-1,))])
def test_several_axes(f, s, axes):
    dtype = "float64" if f is tf.rfftn else "complex128"
    check_grads(lambda x: f(x, s=s, axes=axes), (signal((3, 4), dtype),))


def test_shifts_pass_gradients():
    check_grads(lambda x: tf.ifftshift(tf.fftshift(x, axes=0) * tf.fftshift(x)), (signal((3, 4), "float64"),), order=2)


def test_a_filter_recovers_its_kernel():
    """A real inverse problem in one line: the gradient of a circular convolution is the correlation."""
    x, k, w = (signal((8,), "float64", seed) for seed in range(3))
    loss = lambda k: tr.sum(w * tf.irfft(tf.rfft(x) * tf.rfft(k), n=8))
    expected = np.fft.irfft(np.fft.rfft(np.asarray(w)) * np.conj(np.fft.rfft(np.asarray(x))), 8)
    for way in (grad(loss), tr.compile(grad(loss)), grad(tr.compile(loss))):
        np.testing.assert_allclose(np.asarray(way(k)), expected, atol=1e-12)
