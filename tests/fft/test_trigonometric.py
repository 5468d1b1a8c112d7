"""Cosine and sine transforms: SciPy's values and scales, inverses, derivatives, and the same by Fourier transforms."""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.fft

import tenferro_fft as tf
import tenferro_runtime as tr
from tenferro_ad import check_grads, jacfwd, jacrev
from tenferro_runtime.tracing.expanding import apply_expansion
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError
from tenferro_xla import XlaExecutor

NORMS = ("backward", "ortho", "forward")
ONE = ("dct", "idct", "dst", "idst")
MANY = ("dctn", "idctn", "dstn", "idstn")
DTYPES = ("float32", "float64", "complex64", "complex128")
RNG = np.random.default_rng(8)


def draw(shape, dtype):
    x = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def oracle(name, x, **options):
    """SciPy's result; its own way for complex arrays forgets `orthogonalize`."""
    f = getattr(scipy.fft, name)
    return f(x, **options) if x.dtype.kind == "f" else (f(x.real, **options) + 1j * f(x.imag, **options))


def close(got, want):
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    tolerance = 1e-12 if got.dtype in (np.float64, np.complex128) else 2e-5
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE)
def test_values_along_one_axis(name, dtype, type):
    x = draw((4, 5), dtype)
    for norm, orthogonalize, n, axis in itertools.product(NORMS, (None, True, False), (None, 3, 8), (0, -1)):
        options = {"type": type, "norm": norm, "orthogonalize": orthogonalize, "n": n, "axis": axis}
        close(getattr(tf, name)(x, **options), oracle(name, x, **options))


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", MANY)
def test_values_along_several_axes(name, type):
    x = draw((3, 4, 5), "float64")
    for norm, (s, axes) in itertools.product(NORMS, ((None, None), ((3, 6), None), ((4,), (0,)), ((2, 5), (2, 0)))):
        options = {"type": type, "norm": norm, "s": s, "axes": axes}
        close(getattr(tf, name)(x, **options), oracle(name, x, **options))


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["dct", "dst"])
def test_inverses_undo_and_orthogonal_matrices_are(kind, type):
    x = draw((2, 6), "complex128")
    for norm, orthogonalize in itertools.product(NORMS, (None, True)):
        options = {"type": type, "norm": norm, "orthogonalize": orthogonalize}
        for suffix, axis in (("", {"axis": -1}), ("n", {"axes": (0, 1)})):
            forward, inverse = (getattr(tf, name + suffix) for name in (kind, f"i{kind}"))
            close(inverse(forward(x, **options, **axis), **options, **axis), x)
    q = getattr(tf, kind)(np.eye(5), type=type, norm="ortho").numpy()
    np.testing.assert_allclose(q @ q.T, np.eye(5), atol=1e-13)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["dctn", "dstn"])
def test_derivatives(name, dtype, type):
    x = draw((3, 4), dtype)
    for orthogonalize in (False, True):
        options = {"type": type, "norm": "forward", "orthogonalize": orthogonalize}
        f = partial(getattr(tf, name), **options)
        check_grads(lambda x, f=f: (y := f(x)) * y, (x,), order=2 if dtype == "complex128" else 1)


def test_the_transform_is_its_own_jacobian_traced_and_mapped():
    f = lambda x: tf.dct(x, norm="ortho")
    x = draw(6, "float64")
    want = scipy.fft.dct(np.eye(6), axis=0, norm="ortho")
    for way in (jacfwd(f), jacrev(f), tr.compile(jacrev(f)), jacrev(tr.compile(f))):
        close(way(x), want)
    rows = draw((4, 6), "float64")
    close(tr.compile(tr.vmap(lambda x: tf.idst(x, type=4)))(rows), scipy.fft.idst(rows, type=4))


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["cosine", "sine"])
def test_other_backends_and_xla_use_fourier_transforms(kind, type):
    from tenferro_fft._trigonometric import trigonometric  # the primitive has no public name

    x = draw((3, 5, 4), "complex128")
    for scale, orthogonal, axes, part in itertools.product(NORMS, (True, False), ((1,), (0, 2)), (np.real, np.array)):
        op = trigonometric.op(kind=kind, type=type, scale=scale, orthogonal=orthogonal, axes=axes)
        v = tr.asarray(part(x))
        want = trigonometric(v, **op.params).numpy()
        close(apply_expansion(op, (v,))[0], want)
        compiled = tr.compile(lambda v, op=op: apply_expansion(op, (v,))[0])
        close(compiled(v), want)
    name = {"cosine": "dct", "sine": "dst"}[kind]
    f = lambda x: getattr(tf, name)(x, type=type, norm="ortho")
    (got,) = XlaExecutor().run(tr.trace(f, tr.asarray(x.real)), tr.asarray(x.real))
    close(got, getattr(scipy.fft, name)(x.real, type=type, norm="ortho"))


def test_empty_batches_and_integers():
    assert tf.dct(np.ones((0, 4))).shape == (0, 4)
    assert tf.dstn(np.ones((0, 4), complex), axes=(1,)).shape == (0, 4)
    close(tf.dct(np.arange(4)), scipy.fft.dct(np.arange(4)))
    x = tr.ones(3)
    assert tf.dctn(x, axes=()) is not x


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: tf.dct(np.ones(4), type=5), ArgumentError, "dct takes type 1, 2, 3 or 4, got 5"),
        (lambda: tf.dct(np.ones(1), type=1), ArgumentError, "type 1 needs at least two points along axis 0"),
        (lambda: tf.idst(np.ones(4), n=0), ArgumentError, "idst needs at least 1 point along axis 0, got 0"),
        (lambda: tf.dctn(np.ones((4, 4)), axes=(0, -2)), AxisError, "dctn: axes must be distinct"),
        (lambda: tf.dct(np.ones(4), norm="unit"), ArgumentError, "got 'unit'"),  # type: ignore[arg-type]
        (lambda: tf.dct(tr.ones(4).astype("float16")), DTypeError, "not computed in float16"),
    ],
)
def test_mistakes_are_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
