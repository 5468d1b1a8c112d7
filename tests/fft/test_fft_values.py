"""Transforms against NumPy's, for every norm, length and axis; and the errors."""

import re

import numpy as np
import pytest
import scipy.fft
from hypothesis import given
from hypothesis import strategies as st

import tenferro_fft as tf
import tenferro_runtime as tr
from tenferro_ad import check_grads
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, ShapeError

NORMS = ["backward", "ortho", "forward"]


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def close(got, want):
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    tight = got.dtype in (np.float64, np.complex128)
    np.testing.assert_allclose(got._concrete(), want, rtol=1e-11 if tight else 2e-4, atol=1e-11 if tight else 2e-4)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [None, 1, 3, 4, 5, 9])
@pytest.mark.parametrize("axis", [0, -1])
def test_one_dimensional_transforms(norm, dtype, n, axis):
    x = draw((4, 5), dtype)
    close(tf.fft(x, n=n, axis=axis, norm=norm), np.fft.fft(x, n, axis, norm))
    close(tf.ifft(x, n=n, axis=axis, norm=norm), np.fft.ifft(x, n, axis, norm))
    close(tf.irfft(x, n=n, axis=axis, norm=norm), np.fft.irfft(x, n, axis, norm))
    close(tf.hfft(x, n=n, axis=axis, norm=norm), np.fft.hfft(x, n, axis, norm))
    if x.dtype.kind == "f":
        close(tf.rfft(x, n=n, axis=axis, norm=norm), np.fft.rfft(x, n, axis, norm))
        close(tf.ihfft(x, n=n, axis=axis, norm=norm), np.fft.ihfft(x, n, axis, norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("s", "axes"), [(None, None), ((3, 6), None), ((4,), (0,)), ((2, 5), (2, 0)), (None, (1,))])
def test_several_axes(norm, s, axes):
    chosen = axes if axes is not None else (range(3) if s is None else range(3 - len(s), 3))
    z, x = draw((3, 4, 5), "complex128"), draw((3, 4, 5), "float64")
    close(tf.fftn(z, s=s, axes=axes, norm=norm), np.fft.fftn(z, s, list(chosen), norm))
    close(tf.ifftn(z, s=s, axes=axes, norm=norm), np.fft.ifftn(z, s, list(chosen), norm))
    close(tf.rfftn(x, s=s, axes=axes, norm=norm), np.fft.rfftn(x, s, list(chosen), norm))
    close(tf.irfftn(z, s=s, axes=axes, norm=norm), np.fft.irfftn(z, s, list(chosen), norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("s", "axes"), [(None, (-2, -1)), ((3, 6), (-2, -1)), ((4, 2), (0, 1)), (None, (2, 0))])
def test_two_axes_and_hermitian_arrays(norm, s, axes):
    z, x = draw((3, 4, 5), "complex128"), draw((3, 4, 5), "float64")
    for name in ("fft2", "ifft2", "irfft2"):
        close(getattr(tf, name)(z, s=s, axes=axes, norm=norm), getattr(np.fft, name)(z, s, axes, norm))
    close(tf.rfft2(x, s=s, axes=axes, norm=norm), np.fft.rfft2(x, s, axes, norm))
    for name in ("hfft2", "hfftn"):
        close(getattr(tf, name)(z, s=s, axes=axes, norm=norm), getattr(scipy.fft, name)(z, s, axes, norm))
    for name in ("ihfft2", "ihfftn"):
        close(getattr(tf, name)(x, s=s, axes=axes, norm=norm), getattr(scipy.fft, name)(x, s, axes, norm))
    close(tf.hfftn(z, norm=norm), scipy.fft.hfftn(z, norm=norm))
    check_grads(lambda z: (tf.hfftn(z, s=s, axes=axes, norm=norm), tf.ifft2(z, s=s, axes=axes, norm=norm)), (z,))
    check_grads(lambda x: tf.ihfft2(x, s=s, axes=axes, norm=norm), (x,))


@given(st.integers(1, 12), st.integers(0, 3), st.sampled_from(NORMS))
def test_inverses_undo(n, batch, norm):
    x = draw((batch, n), "float64", seed=n)
    np.testing.assert_allclose(tf.ifft(tf.fft(x, norm=norm), norm=norm)._concrete(), x, atol=1e-12)
    np.testing.assert_allclose(tf.irfft(tf.rfft(x, norm=norm), n=n, norm=norm)._concrete(), x, atol=1e-12)


def test_empty_batches_and_integers():
    assert tf.rfft(np.ones((0, 4))).shape == (0, 3)
    assert tf.irfft(np.ones((0, 3), complex)).shape == (0, 4)
    close(tf.fft(np.arange(4)), np.fft.fft(np.arange(4)))


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_and_shifts(n):
    np.testing.assert_allclose(tf.fftfreq(n, d=0.3)._concrete(), np.fft.fftfreq(n, 0.3))
    np.testing.assert_allclose(tf.rfftfreq(n, d=0.3)._concrete(), np.fft.rfftfreq(n, 0.3))
    x = draw((n, 3), "float64")
    for axes in (None, 0, (1, 0)):
        np.testing.assert_array_equal(tf.fftshift(x, axes=axes)._concrete(), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(tf.ifftshift(tensor(x), axes=axes)._concrete(), np.fft.ifftshift(x, axes))


MISTAKES = [
    (lambda: tf.fft(np.ones(4), n=0), ArgumentError, "needs at least 1 point along axis 0, got 0"),
    (lambda: tf.fft(np.ones((2, 0))), ArgumentError, "needs at least 1 point along axis 1"),
    (lambda: tf.fft(np.ones(4), axis=1), AxisError, "axes must be distinct and exist in shape (4,), got (1,)"),
    (lambda: tf.fftn(np.ones((4, 4)), axes=(0, -2)), AxisError, "axes must be distinct"),
    (lambda: tf.fftn(np.ones((4, 4)), s=(2,), axes=(0, 1)), ArgumentError, "s has 1 entries for 2 axes"),
    (lambda: tf.fft(np.ones(4), norm="unitary"), ArgumentError, "got 'unitary'"),  # type: ignore[arg-type]
    (lambda: tf.rfft(np.ones(4, complex)), DTypeError, "use fftn or fft"),
    (lambda: tf.fft(np.float64(1.0)), AxisError, "exist in shape ()"),
    (lambda: tf.fft("signal"), ArgumentError, "takes an array, got a str"),
    (lambda: tf.fftfreq(0), ArgumentError, "positive number of points, got 0"),
    (lambda: tf.fft(np.ones(4), axis="x"), ArgumentError, "fft takes integers as axes, got ('x',)"),  # type: ignore[arg-type]
    (lambda: tf.fft(np.ones(4), n=2.5), ArgumentError, "fft takes integers as s, got (2.5,)"),  # type: ignore[arg-type]
    (lambda: tf.fftn(np.ones(4), axes=0), ArgumentError, "fftn takes integers as axes, got 0"),  # type: ignore[arg-type]
    (lambda: tf.fftn(np.ones(4), s=3), ArgumentError, "fftn takes integers as s, got 3"),  # type: ignore[arg-type]
    (lambda: tf.fft(np.ones(4), n=2**63), ShapeError, "more than the address space"),
    (lambda: tf.ifft(np.ones(4), norm=np.ones(2)), ArgumentError, "norm must be 'backward', 'ortho' or 'forward'"),  # type: ignore[arg-type]
    (lambda: tf.fftfreq(4, d=0), ArgumentError, "the sample spacing d must not be 0"),
    (lambda: tf.rfftfreq(4, d="x"), ArgumentError, "the sample spacing d must be a number, got 'x'"),  # type: ignore[arg-type]
    (lambda: tf.fftfreq(2**70), ArgumentError, "positive number of points"),
    (lambda: tf.fftshift(np.ones(3), axes=0.5), ArgumentError, "fftshift takes integers as axes, got 0.5"),  # type: ignore[arg-type]
    (lambda: tf.fftshift(np.ones(3), axes=2), AxisError, "axis 2 does not exist in shape (3,)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), MISTAKES)
def test_mistakes_are_named(call, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        call()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "irfftn"])
def test_scales_of_symbolic_sizes_are_those_of_known_ones(name, dtype, norm):
    """To the bit: 1 / sqrt(n) is rounded to single precision once, whether a program knows n or not."""
    if name in ("rfft", "ihfft"):
        dtype = "float32" if dtype in ("float32", "complex64") else "float64"

    def f(x):
        return getattr(tf, name)(x, norm=norm)

    compiled = tr.compile(f, deterministic=True)
    for n in range(2, 24):
        x = tensor(draw((2, n), dtype, seed=n))
        assert compiled(x).numpy().tobytes() == f(x).numpy().tobytes(), n


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_of_symbolic_sizes_are_those_of_known_ones(name, dtype):
    def f(x):
        return getattr(tf, name)(x.shape[0], d=0.3, dtype=dtype)

    compiled = tr.compile(f, deterministic=True)
    for n in range(2, 40):
        x = tensor(np.zeros(n))
        assert compiled(x).numpy().tobytes() == f(x).numpy().tobytes(), n
