"""Functions of tensors inside of JAX: values, derivatives and batches, under its settings and conventions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import tenferro_einsum as te
import tenferro_fft as tf
import tenferro_linalg as tl
import tenferro_runtime as tr
import tenferro_xla
from tenferro_ad import grad
from tenferro_ad.adapters.jax import as_jax
from tenferro_runtime import special
from tenferro_tensor_core import ArgumentError, UnsupportedError
from tenferro_xla._jax_modules import wide_numbers

RNG = np.random.default_rng(3)
M, V, T = RNG.standard_normal((3, 3)), RNG.standard_normal(3), RNG.standard_normal((2, 3, 2))


@pytest.fixture
def wide():
    """JAX with 64 bits; its compiler takes no pains, since many programs run once."""
    jax.config.update("jax_disable_most_optimizations", True)
    with wide_numbers():
        yield
    jax.config.update("jax_disable_most_optimizations", False)


def shortest(x):
    """A loop whose number of steps depends on data."""
    return tr.while_loop(lambda c: tr.sum(c[0]) < 5.0, lambda c: (c[0] * 1.5, c[1] + tr.sum(c[0] * c[0])), (x, 0.0))[0]


FUNCTIONS: dict[str, Any] = {
    "svd": (tl.svdvals, M),
    "eigh": (lambda a: tl.eigh(a).eigenvalues, M),
    "solve": (lambda a, b: {"x": tl.solve(a, b), "det": tl.slogdet(a)[1]}, M, V),
    "einsum": (lambda a, b: te.einsum("iaj,jbk,ab->ik", a, tr.swapaxes(a, 0, 2), b), T, M),
    "fft": (lambda x: tr.abs(tf.fft(x)) ** 2 + tr.real(tf.ifft(tf.fft(x) * 1j)), V),
    "scan": (lambda a, x: tr.scan(lambda c, r: (tr.tanh(c + r), c * r), x, a), M, V),
    "loop": (lambda x: tr.fori_loop(0, 4, lambda i, c: tr.sin(c) + x * i, x), V),
    "gather": (lambda x, i: x[i] * x[::-1], V, np.array([2, 0, 2])),
    "scatter": (lambda x, i: tr.zeros(5, dtype=x.dtype) + tr.cumsum(x)[0] * x[i].sum(), V, np.array([0, 2, 2])),
    "random": (lambda k, x: tr.random.normal(tr.random.wrap_key_data(k), (3,), x.dtype) * x * x,
               np.array([0, 7], np.uint32), V),
    "special": (lambda x: special.gammaln(tr.abs(x) + 1.0) + special.erf(x) + special.expit(x), V),
    "branch": (lambda x: tr.cond(tr.sum(x) > 0, lambda x: x * x, lambda x: tr.exp(x), x), V),
}  # fmt: skip


def of_floats(f, arrays):
    """The function of its floating-point arguments, and these."""
    floating = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    def g(*xs):
        given = dict(zip(floating, xs, strict=True))
        return f(*[given.get(i, a) for i, a in enumerate(arrays)])

    return g, [arrays[i] for i in floating]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_derivatives_and_batches(name, wide):
    f, *arrays = FUNCTIONS[name]
    g = as_jax(f)
    ours = f(*map(tr.asarray, arrays))
    for got, want in zip(jax.tree.leaves(jax.jit(g)(*arrays)), jax.tree.leaves(ours), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-10, atol=1e-12)
    h, floats = of_floats(g, [jnp.asarray(a) for a in arrays])
    check_grads(h, floats, 2, rtol=1e-4, atol=1e-4)
    lanes = [jnp.stack([a, a * 1.25, a + 0.125]) for a in floats]
    each = [h(*[x[i] for x in lanes]) for i in range(3)]
    for got, *want in zip(*map(jax.tree.leaves, (jax.vmap(h)(*lanes), *each)), strict=True):
        np.testing.assert_allclose(got, jnp.stack(want), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_gradients_are_those_of_tenferro_and_of_jax(dtype, wide):
    x = (V + 1j * V[::-1] if dtype.startswith("complex") else V).astype(dtype)

    def loss(xp, x):
        return xp.sum(xp.abs(xp.sin(x) * xp.conj(x) ** 2 + xp.exp(x)) ** 2)

    ours, theirs = as_jax(lambda x: loss(tr, x)), lambda x: loss(jnp, x)
    rtol = 1e-4 if dtype in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose(jax.grad(ours)(x), jax.grad(theirs)(x), rtol=rtol)
    np.testing.assert_allclose(jax.grad(ours)(x), np.conj(grad(lambda x: loss(tr, x))(x)), rtol=rtol)
    t = x[::-1].copy()
    np.testing.assert_allclose(jax.jvp(ours, (x,), (t,))[1], jax.jvp(theirs, (x,), (t,))[1], rtol=rtol)
    pull, theirs_pulled = jax.vjp(as_jax(lambda z: tr.conj(z) * z * z), x)[1], jax.vjp(lambda z: z.conj() * z * z, x)[1]
    np.testing.assert_allclose(pull(t)[0], theirs_pulled(t)[0], rtol=rtol)
    if dtype == "float64":
        per_lane = jax.vmap(jax.grad(ours))(jnp.stack([x, t]))
        np.testing.assert_allclose(per_lane, np.stack([jax.grad(theirs)(x), jax.grad(theirs)(t)]), rtol=rtol)


def test_third_order_and_loops_of_jax_around_it(wide):
    f = as_jax(lambda x: tr.sin(x) * x)
    check_grads(f, (jnp.asarray(0.7),), 3)

    def rolled(x):
        return jax.lax.scan(lambda c, _: (jax.checkpoint(f)(c), f(c)), x, None, length=3)

    g = lambda x: jnp.sin(x) * x
    want = jax.grad(lambda x: g(g(g(x))))(0.7)
    np.testing.assert_allclose(jax.grad(lambda x: rolled(x)[0])(0.7), want, rtol=1e-12)
    np.testing.assert_allclose(jax.linearize(f, 0.7)[1](2.0), 2.0 * jax.grad(g)(0.7), rtol=1e-12)


def test_a_loop_of_unknown_length_has_derivatives_in_both_modes(wide):
    f = jax.jit(as_jax(shortest))
    x, t = jnp.asarray([0.5, 0.25]), jnp.asarray([1.0, -1.0])  # five steps
    np.testing.assert_allclose(jax.jvp(f, (x,), (t,))[1], 1.5**5 * t, rtol=1e-12)
    np.testing.assert_allclose(jax.grad(lambda x: f(x)[0] * f(x)[1])(x), 1.5**10 * x[::-1], rtol=1e-12)


def test_what_does_not_move_has_no_derivative(wide):
    f = as_jax(lambda x, i, unused: {"y": x[i] * 2.0, "at": tr.argmax(x), "one": tr.ones(2), "none": None})
    out, pull = jax.vjp(f, V, np.array([1]), M)
    assert out["none"] is None and out["at"].dtype == np.int64
    zero = np.zeros((), jax.dtypes.float0)
    x, i, unused = pull({"y": jnp.ones(1), "at": zero, "one": jnp.ones(2), "none": None})
    np.testing.assert_array_equal(x, [0.0, 2.0, 0.0])
    assert i.dtype == jax.dtypes.float0
    np.testing.assert_array_equal(unused, np.zeros((3, 3)))
    assert jax.jvp(f, (V, np.array([1]), M), (V, np.zeros(1, jax.dtypes.float0), M))[1]["at"].dtype == jax.dtypes.float0


def test_without_64_bits_results_are_narrowed():
    inside = []

    def f(x):
        y = tr.zeros(3) + x
        inside.append(y.dtype)
        return y, tr.argmax(x), tr.sum(y) + 1j

    y, at, z = jax.jit(as_jax(f))(V)
    assert inside == [np.float64]
    assert (y.dtype, at.dtype, z.dtype) == (np.float32, np.int32, np.complex64)
    assert jax.grad(lambda x: as_jax(f)(x)[0].sum())(jnp.asarray(V)).dtype == np.float32
    assert jax.hessian(lambda x: as_jax(f)(x * x)[0].sum())(jnp.asarray(V)).dtype == np.float32


def test_keys_of_jax_are_keys():
    key = jax.random.key(42)
    draw = as_jax(lambda k, x: tr.random.uniform(k, (4,), tr.float32) * x)
    np.testing.assert_array_equal(draw(key, 1.0), jax.random.uniform(key, (4,)))
    keys = jax.random.split(key, 2)
    np.testing.assert_array_equal(
        jax.vmap(draw, (0, None))(keys, 1.0), jax.vmap(lambda k: jax.random.uniform(k, (4,)))(keys)
    )


def test_what_fails_is_nan(wide):
    f = as_jax(lambda a: (tl.solve(a, a[0]), tr.asarray(3)))
    x, n = jax.jit(f)(jnp.ones((2, 2)))
    assert np.isnan(x).all() and n == 3
    assert np.isfinite(f(jnp.eye(2))[0]).all()
    assert np.isnan(jax.vmap(f)(jnp.stack([jnp.eye(2), jnp.ones((2, 2))]))[0]).all()


def test_a_function_is_traced_once_for_each_kind_of_arguments():
    count = []
    f = as_jax(lambda x: count.append(1) or tr.sin(x))
    for x in (jnp.ones(2), jnp.zeros(2), jnp.ones(3)):
        f(x), jax.jit(f)(x), jax.grad(lambda x: f(x).sum())(x)
    assert len(count) == 2


def test_it_runs_on_every_device_of_a_mesh():
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("i",))
    P = jax.sharding.PartitionSpec
    f = as_jax(lambda x, w: tr.sin(x) * w)
    spread = jax.shard_map(
        lambda x, w: jax.lax.psum(f(x, w).sum(), "i"), mesh=mesh, in_specs=(P("i"), P()), out_specs=P()
    )
    x, w = jnp.asarray(V, jnp.float32), jnp.float32(2.0)
    for got, want in zip(jax.jit(jax.grad(spread, (0, 1)))(x, w), (2 * np.cos(V), np.sin(V).sum()), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_it_names_mistakes():
    with pytest.raises(ArgumentError, match="as_jax takes a function, got 3"):
        as_jax(3)
    with pytest.raises(AttributeError, match=r"no attribute 'as_jax'; use tenferro_ad\.adapters\.jax\.as_jax"):
        tenferro_xla.as_jax  # type: ignore[attr-defined]
    opaque = as_jax(lambda x: tr.pure_callback(np.sin, x, x))
    with pytest.raises(UnsupportedError, match="pure_callback.* has no StableHLO lowering"):
        jax.jit(opaque)(jnp.ones(2))
