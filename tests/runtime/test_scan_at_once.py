"""Loops over fused regions, carried out by one call of machine code, against the same loops step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_cpu.native.kernels._loop as native_loop
import tenferro_runtime as tr
from tenferro_ad import grad, value_and_grad
from tenferro_cpu.native import available
from tenferro_runtime import fusion
from tenferro_tensor import tensor

pytestmark = pytest.mark.skipif(not available(), reason="no machine code here")


def recurrent(w, b, start, xs, reverse):
    def step(c, x):
        h, total = c
        new = tr.tanh(h * w + x * b)
        return (new, total + new * x), (new - 1.0, h, total)

    return tr.scan(step, start, xs, reverse=reverse)


def leaves(found):
    (h, total), rows = found
    return [np.asarray(x.numpy()) for x in (h, total, *rows)]


@pytest.fixture
def calls(monkeypatch):
    """How often machine code has carried a loop out."""
    found = []
    plain = native_loop.Looped._run
    monkeypatch.setattr(native_loop.Looped, "_run", lambda self, *args: (found.append(args[0]), plain(self, *args))[1])
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (1,), (1000,)])
@pytest.mark.parametrize("reverse", [False, True])
def test_all_steps_at_once_are_the_steps(calls, dtype, shape, reverse):
    rng = np.random.default_rng(0)
    f = tr.compile(recurrent, static_argnames=("reverse",))

    def numbers(*extents):
        found = rng.normal(size=extents)
        return tensor((found + 1j * rng.normal(size=extents) if dtype == "complex128" else found).astype(dtype))

    for steps in (40, 40, 40, 0, 1, 17, 2000 // shape[0]):
        w, b, c, xs = numbers(*shape), numbers(*shape), (numbers(*shape), numbers(*shape)), numbers(steps, *shape)
        got = leaves(f(w, b, c, xs, reverse=reverse))
        fusion.wait()
        want = leaves(recurrent(w, b, c, xs, reverse))
        for a, e in zip(got, want, strict=True):
            assert a.shape == e.shape and a.dtype == e.dtype
            np.testing.assert_allclose(a, e, rtol=3e-5 if dtype == "float32" else 1e-11, atol=1e-5)
    assert calls


F = tr.compile(recurrent, static_argnames=("reverse",))


@settings(max_examples=60)
@given(
    steps=st.integers(0, 80), n=st.integers(0, 6), seed=st.integers(0, 9), reverse=st.booleans(),
    block=st.sampled_from([1, 100, 1000, 1 << 15]), stride=st.sampled_from([1, 2, -1]),
)  # fmt: skip
def test_blocks_strides_and_extents(steps, n, seed, reverse, block, stride):
    rng = np.random.default_rng(seed)
    w, b, h, total = (tensor(rng.normal(size=n)) for _ in range(4))
    xs = tensor(rng.normal(size=(steps, 3, n)))[::stride, 1]
    before, native_loop.BLOCK = native_loop.BLOCK, block  # type: ignore[misc]
    try:
        got = leaves(F(w, b, (h, total), xs, reverse=reverse))
    finally:
        native_loop.BLOCK = before  # type: ignore[misc]
    fusion.wait()
    for a, e in zip(got, leaves(recurrent(w, b, (h, total), xs, reverse)), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-11, atol=1e-11)


def test_gradients_go_through_such_loops(calls):
    def loss(w, xs):
        return tr.sum(tr.scan(lambda c, x: (tr.tanh(c * w + x), c), xs[0], xs)[0])

    rng = np.random.default_rng(0)
    compiled = tr.compile(value_and_grad(loss, argnums=(0, 1)))
    for steps in (30, 30, 30, 30, 50):
        w, xs = tensor(rng.normal(size=4)), tensor(rng.normal(size=(steps, 4)))
        value, pulled = compiled(w, xs)
        fusion.wait()
        np.testing.assert_allclose(value.numpy(), loss(w, xs).numpy(), rtol=1e-12)
        for got, want in zip(pulled, grad(loss, argnums=(0, 1))(w, xs), strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)
    assert calls[-2:] == [50, 50]


def test_a_constant_and_a_scalar_feed_every_step(calls):
    table = tensor(np.arange(1.0, 4.0))

    def f(x, scale, ts):
        return tr.scan(lambda c, t: (c * scale + table * t, None), x, ts)[0]

    compiled = tr.compile(f)
    for _ in range(5):
        x, scale, ts = tensor(np.ones(3)), tensor(0.5), tensor(np.arange(20.0))
        np.testing.assert_allclose(compiled(x, scale, ts).numpy(), f(x, scale, ts).numpy(), rtol=1e-12)
        fusion.wait()
    assert calls


def test_large_steps_are_left_to_calls_of_their_own(calls):
    f = tr.compile(lambda x, xs: tr.scan(lambda c, v: (tr.sin(c) + v * c, None), x, xs)[0])
    x, xs = tensor(np.ones(200_000)), tensor(np.ones((17, 200_000)))
    for _ in range(4):
        got = f(x, xs)
        fusion.wait()
    assert got.shape == (200_000,) and not calls
