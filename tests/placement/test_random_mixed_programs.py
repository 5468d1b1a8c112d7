"""Random functions over pools and accelerators: compiled, they give the bits of eager calls, and right gradients."""

import random

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_ad import grad
from tenferro_cpu import CpuPool

DEVICES = ("cpu:0", "cpu:1", "cpu:2", "sim:0", "sim:1")
UNARY = (tr.sin, tr.cos, tr.tanh, tr.negative, lambda x: x * 0.5, lambda x: x.T, lambda x: tr.flip(x, axis=0))
BINARY = (tr.add, tr.multiply, tr.matmul, tr.subtract)


def there(x, device, by_scope):
    """A value on a device: moved, named, or where it is, for a scope."""
    if device.startswith("sim"):
        return tr.to_device(x, device)
    x = tr.to_device(x, "cpu:0").with_compute_device(None)
    return x if by_scope else x.with_compute_device(device)


def random_function(seed):
    """A function of two matrices that draws the same steps whenever it is called."""

    def f(x, y):
        rng = random.Random(seed)
        values = [x, y]
        for _ in range(rng.randint(4, 14)):
            device, by_scope = rng.choice(DEVICES), rng.random() < 0.5
            if rng.random() < 0.5:
                op, operands = rng.choice(UNARY), [rng.choice(values)]
            else:
                op, operands = rng.choice(BINARY), [rng.choice(values[-4:]) for _ in range(2)]
            operands = [there(v, device, by_scope) for v in operands]
            if by_scope and device.startswith("cpu"):
                with tr.compute_device(device):
                    values.append(op(*operands))
            else:
                values.append(op(*operands))
        chosen = [values[-1], rng.choice(values)]
        return [v if rng.random() < 0.5 else there(v, "cpu:0", True) for v in chosen]

    return f


@pytest.fixture
def machine():
    with simulated(count=2) as runtime, CpuPool(index=1), CpuPool(index=2):
        yield runtime


def squares(f):
    def loss(x, y):
        return sum(tr.sum(there(v, "cpu:0", True) ** 2) for v in f(x, y))

    return loss


def on_host(x):
    return np.asarray(tr.to_device(x, "cpu:0"))


def test_compiled_functions_give_the_bits_and_the_places_of_eager_calls(machine, plans):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        f = random_function(seed)
        x, y = (tr.asarray(rng.standard_normal((3, 3))) for _ in range(2))
        compiled = tr.compile(f, deterministic=True)
        for _ in range(2):
            for got, expected in zip(compiled(x, y), f(x, y), strict=True):
                assert np.array_equal(on_host(got), on_host(expected)), seed
                assert got.spec is expected.spec, seed
    assert len(plans) > 30


def test_gradients_of_compiled_functions_are_those_of_eager_calls(machine, plans):
    for seed in range(100, 112):
        rng = np.random.default_rng(seed)
        loss = squares(random_function(seed))
        x, y = (tr.asarray(rng.standard_normal((3, 3))) for _ in range(2))
        expected = grad(loss, argnums=(0, 1))(x, y)
        for g in (tr.compile(grad(loss, argnums=(0, 1))), grad(tr.compile(loss), argnums=(0, 1))):
            for a, b in zip(g(x, y), expected, strict=True):
                assert np.allclose(a, b, rtol=1e-10, atol=1e-10), seed
                assert a.spec is b.spec, seed
    assert plans
