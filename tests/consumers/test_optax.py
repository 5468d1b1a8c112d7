"""optax with gradients of tenferro: its optimizers run on JAX arrays, which share memory with tensors by DLPack."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, value_and_grad

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
optax = pytest.importorskip("optax")

from tenferro_runtime.adapters.optax import apply_updates, on_tensors  # noqa: E402 - which imports optax

RNG = np.random.default_rng(8)
X, Y = RNG.normal(size=(20, 3)), RNG.normal(size=20)
START = {"weights": np.zeros(3), "layers": [np.float64(0.5), RNG.normal(size=(2, 2))]}


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def loss(p: Any) -> Any:
    bias, square = p["layers"]
    return tr.mean((tr.asarray(X) @ p["weights"] + bias - tr.asarray(Y)) ** 2) + 0.1 * tr.sum(square**2)


def loss_of_jax(p: Any) -> Any:
    bias, square = p["layers"]
    return jnp.mean((X @ p["weights"] + bias - Y) ** 2) + 0.1 * jnp.sum(square**2)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "rmsprop", "lion"])
def test_the_steps_are_those_of_a_loss_in_jax(name: str) -> None:
    optimizer = getattr(optax, name)(0.05)
    slope, update = tr.compile(grad(loss)), jax.jit(optimizer.update)
    theirs = jax.tree.map(jnp.asarray, START)
    state = optimizer.init(theirs)
    tensors = jax.tree.map(tr.asarray, START)
    ours, our_state = theirs, state
    for _ in range(8):
        gradient = jax.tree.map(jnp.from_dlpack, slope(tensors))
        updates, our_state = update(gradient, our_state, ours)
        ours = optax.apply_updates(ours, updates)
        tensors = jax.tree.map(tr.from_dlpack, ours)
        updates, state = update(jax.grad(loss_of_jax)(theirs), state, theirs)
        theirs = optax.apply_updates(theirs, updates)
    assert {type(leaf) for leaf in jax.tree.leaves(tensors)} == {tr.Tensor}
    for a, b in zip(jax.tree.leaves(tensors), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10)


@pytest.mark.parametrize("name", ["adamw", "rmsprop"])
def test_the_adapter_s_steps_are_those_of_optax(name: str) -> None:
    plain, wrapped = getattr(optax, name)(0.05), on_tensors(getattr(optax, name)(0.05))
    theirs, ours = jax.tree.map(jnp.asarray, START), jax.tree.map(tr.asarray, START)
    state, slope = plain.init(theirs), tr.compile(grad(loss))
    with jax.enable_x64(False):
        our_state = wrapped.init(ours)
        for _ in range(4):
            updates, our_state = wrapped.update(slope(ours), our_state, ours)
            ours = apply_updates(ours, updates)
    for _ in range(4):
        updates, state = plain.update(jax.grad(loss_of_jax)(theirs), state, theirs)
        theirs = optax.apply_updates(theirs, updates)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert type(a) is tr.Tensor
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10)


def test_a_fit_converges_with_a_schedule_and_clipped_gradients() -> None:
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(0.1, 300)))
    step = tr.compile(value_and_grad(loss))
    update = jax.jit(optimizer.update)
    weights = jax.tree.map(jnp.asarray, START)
    state = optimizer.init(weights)
    for _ in range(300):
        _, slopes = step(jax.tree.map(tr.from_dlpack, weights))
        updates, state = update(jax.tree.map(jnp.from_dlpack, slopes), state)
        weights = optax.apply_updates(weights, updates)
    design = np.column_stack([X, np.ones(20)])
    best = np.linalg.lstsq(design, Y)[0]
    found = np.append(np.asarray(weights["weights"]), float(weights["layers"][0]))
    np.testing.assert_allclose(found, best, atol=1e-3)


def test_a_tensor_beside_an_array_of_jax_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"tr\.asarray"):
        tr.ones(3) * jnp.ones(3)
