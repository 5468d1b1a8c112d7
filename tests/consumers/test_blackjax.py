"""blackjax samples a density of tenferro: the value and the gradient come from one compiled program."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import value_and_grad

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
blackjax = pytest.importorskip("blackjax")

PRECISION = np.array([[2.0, 0.6], [0.6, 0.5]])
MEAN = np.array([1.0, -2.0])


@tr.compile
@value_and_grad
def density(position: Any) -> Any:
    """The logarithm of a normal density, up to a constant."""
    off = position - tr.asarray(MEAN)
    return -0.5 * off @ tr.asarray(PRECISION) @ off


def on_host(position: Any) -> tuple[np.ndarray, np.ndarray]:
    value, slope = density(np.asarray(position))
    return np.asarray(value), np.asarray(slope)


@jax.custom_vjp
def logdensity(position: Any) -> Any:
    return both(position)[0]


def both(position: Any) -> Any:
    like = jax.ShapeDtypeStruct((), position.dtype), jax.ShapeDtypeStruct(position.shape, position.dtype)
    return jax.pure_callback(on_host, like, position)


logdensity.defvjp(both, lambda slope, cotangent: (cotangent * slope,))


@pytest.mark.parametrize("name", ["hmc", "nuts"])
def test_samplers_find_mean_and_covariance(name: str) -> None:
    with jax.enable_x64(True):
        options = {"num_integration_steps": 8} if name == "hmc" else {}
        sampler = getattr(blackjax, name)(logdensity, step_size=0.5, inverse_mass_matrix=jnp.ones(2), **options)
        state, step, positions = sampler.init(jnp.zeros(2)), jax.jit(sampler.step), []
        for key in jax.random.split(jax.random.key(0), 400):
            state, info = step(key, state)
            positions.append(np.asarray(state.position))
    assert float(info.acceptance_rate) > 0.3
    kept = np.array(positions[100:])
    np.testing.assert_allclose(kept.mean(0), MEAN, atol=0.35)
    np.testing.assert_allclose(np.cov(kept.T), np.linalg.inv(PRECISION), atol=0.8)


def test_a_leapfrog_sampler_of_our_own_keeps_the_energy() -> None:
    """Hamiltonian dynamics as one compiled loop, without JAX: the error of the energy is of second order."""
    start, momentum = np.array([0.0, 0.5]), np.array([0.3, -0.2])

    def path(position: Any, momentum: Any, size: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            q, p = carry
            p = p + 0.5 * size * density(q)[1]
            q = q + size * p
            return (q, p + 0.5 * size * density(q)[1]), None

        (q, p), _ = tr.scan(step, (position, momentum), None, length=16)
        return density(q)[0] - 0.5 * tr.sum(p**2)

    total = density(start)[0].item() - 0.5 * (momentum**2).sum()
    run = tr.compile(path)
    errors = [abs(run(tr.asarray(start), tr.asarray(momentum), h).item() - total) for h in (0.05, 0.025)]
    assert errors[0] < 0.05 and errors[1] < errors[0]
