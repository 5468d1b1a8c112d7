"""Functions of JAX on tensors: values, derivatives of both modes and orders, batches; eager, compiled and in XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, hessian, jvp
from tenferro_ad.adapters.jax import as_jax, from_jax
from tenferro_tensor_core import ArgumentError
from tenferro_xla import XlaExecutor

RNG = np.random.default_rng(5)
X, W = RNG.standard_normal(3), RNG.standard_normal((3, 2))


def layer(x, w):
    y = jnp.tanh(x @ w)
    return {"sum": jnp.sum(y * y), "at": jnp.argmax(y), "x": x}


hosted = from_jax(layer)


def test_values_keep_64_bits_containers_and_the_settings_of_the_process():
    out = hosted(X, W)
    want = np.tanh(X @ W)
    np.testing.assert_allclose(out["sum"].numpy(), (want**2).sum(), rtol=1e-15)
    assert out["sum"].dtype == np.float64
    assert out["at"].dtype == np.int64
    assert int(out["at"]) == want.argmax()
    assert jnp.ones(1).dtype == np.float32
    x = tr.asarray(X)
    same = hosted(x, W)["x"]
    np.testing.assert_array_equal(same.numpy(), X)
    assert not np.shares_memory(same.numpy(), x.numpy())


def test_derivatives():
    f = lambda x, w: hosted(x, w)["sum"]
    check_grads(f, (X, W), order=2)
    exact = lambda x: tr.sum(tr.tanh(x @ W) ** 2)
    np.testing.assert_allclose(hessian(lambda x: f(x, W))(X), hessian(exact)(X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(tr.compile(grad(lambda x: f(x * x, W)))(X), grad(lambda x: exact(x * x))(X), rtol=1e-10)
    program = tr.trace(grad(lambda x: f(x, W)), tr.asarray(X))
    np.testing.assert_allclose(XlaExecutor().run(program, X)[0], grad(exact)(X), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_conventions_of_dtypes(dtype):
    x = (X + 1j * X[::-1] if dtype.startswith("complex") else X).astype(dtype)

    def loss(xp, x):
        return xp.sum(xp.abs(xp.sin(x) * xp.conj(x)) ** 2)

    f = from_jax(lambda x: loss(jnp, x))
    tolerance = 1e-12 if dtype == "complex128" else 1e-4
    np.testing.assert_allclose(grad(f)(x), grad(lambda x: loss(tr, x))(x), rtol=tolerance)
    got, want = (jvp(g, (x,), (x[::-1].copy(),))[1] for g in (f, lambda x: loss(tr, x)))
    np.testing.assert_allclose(got, want, rtol=tolerance)


def test_batches_and_sizes():
    f = lambda x: hosted(x, W)["sum"]
    lanes = np.stack([X, 2 * X])
    want = [float(f(x)) for x in lanes]
    np.testing.assert_allclose(tr.vmap(f)(lanes), want, rtol=1e-12)
    np.testing.assert_allclose(tr.vmap(grad(f))(lanes), [grad(f)(x).numpy() for x in lanes], rtol=1e-12)
    total = tr.compile(from_jax(lambda x: jnp.cumsum(x)[-1] + x.shape[0]))
    for n in (2, 3, 5):
        assert float(total(tr.ones(n))) == 2 * n


def test_there_and_back():
    f = as_jax(lambda x: hosted(tr.sin(x), tr.asarray(W, dtype=x.dtype))["sum"])
    g = lambda x: layer(jnp.sin(x), jnp.asarray(W))["sum"]
    x = jnp.asarray(X, jnp.float32)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), jax.grad(g)(x), rtol=1e-4)


def test_mistakes_are_named():
    with pytest.raises(ArgumentError, match="from_jax takes a function, got 3"):
        from_jax(3)
    with pytest.raises(ArgumentError, match="nothing returned no arrays to from_jax"):
        from_jax(nothing)(X)


def nothing(x):
    return None
