"""An explicit device ranks before every scope, for all functions that make arrays or move them."""

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_cpu import CpuPool
from tenferro_tensor import StreamContext
from tenferro_tensor.functions import creation
from tenferro_tensor_core import AmbiguousPlacementError

HERE = [1.0, 2.0]

MAKERS = {
    "asarray": lambda d, n: tr.asarray(HERE, device=d),
    "asarray of another dtype": lambda d, n: tr.asarray(HERE, dtype=tr.float32, device=d),
    "asarray of a tensor": lambda d, n: tr.asarray(tr.asarray(HERE, device="cpu:0"), dtype=tr.float32, device=d),
    "asarray of a tensor that is there": lambda d, n: tr.asarray(tr.asarray(HERE, device=d), dtype="int64", device=d),
    "from_dlpack": lambda d, n: tr.from_dlpack(np.ones(2), device=d),
    "full": lambda d, n: tr.full((2, n), 3, device=d),
    "full of a value": lambda d, n: tr.full((n,), tr.asarray(3.0, device="cpu:0"), device=d),
    "zeros": lambda d, n: tr.zeros((n, 2), device=d),
    "ones": lambda d, n: tr.ones(n, dtype=tr.complex64, device=d),
    "empty": lambda d, n: tr.empty((0, n), device=d),
    "full_like": lambda d, n: tr.full_like(tr.asarray(HERE, device=d), 2),
    "zeros_like": lambda d, n: tr.zeros_like(tr.asarray(HERE, device=d)),
    "ones_like": lambda d, n: tr.ones_like(np.ones((2, 3)), device=d),
    "empty_like": lambda d, n: tr.empty_like(tr.asarray(HERE, device="cpu:0"), dtype=tr.bool, device=d),
    "arange": lambda d, n: tr.arange(0, n, device=d),
    "arange of floats": lambda d, n: tr.arange(0, n, 1, dtype=tr.float32, device=d),
    "linspace": lambda d, n: tr.linspace(0, 1, n, device=d),
    "linspace without its end": lambda d, n: tr.linspace(0, 10, n, dtype=tr.int64, endpoint=False, device=d),
    "linspace of values": lambda d, n: tr.linspace(tr.asarray(0.5, device=d), 2.0, n, device=d),
    "eye": lambda d, n: tr.eye(n, device=d),
    "eye of a shape": lambda d, n: tr.eye(n, 3, k=1, device=d),
    "to_device": lambda d, n: tr.to_device(np.ones(2), d),
    "to_device of a tensor": lambda d, n: tr.asarray(HERE, device="cpu:0").to_device(d),
    "astype": lambda d, n: tr.astype(tr.asarray(HERE, device="cpu:0"), tr.float32, device=d),
}

SCOPES = {
    "another accelerator": lambda: tr.compute_device("sim:1"),
    "the CPU": lambda: tr.compute_device("cpu:0"),
    "a pool": lambda: tr.compute_device("cpu:1"),
    "a stream of another accelerator": lambda: tr.compute_context(StreamContext("sim:1")),
}


@pytest.fixture(autouse=True)
def devices():
    with simulated(), CpuPool(index=1):
        yield


def test_every_function_with_a_device_is_here():
    import inspect

    named = {name for name in creation.__all__ if "device" in inspect.signature(getattr(creation, name)).parameters}
    assert named <= {name.split()[0] for name in MAKERS}


@pytest.mark.parametrize("device", ["sim:0", "cpu:0"])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", MAKERS)
def test_the_device_is_the_explicit_one(name, scope, device):
    wanted = MAKERS[name](device, 3)
    assert str(wanted.device) == device
    with SCOPES[scope]():
        found = MAKERS[name](device, 3)
    same(found, wanted)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", MAKERS)
def test_also_of_open_sizes_and_in_programs(name, scope):
    wanted = MAKERS[name]("sim:0", 3)
    x = tr.asarray([1.0, 2.0, 3.0], device="sim:0")
    with SCOPES[scope]():
        same(tr.compile(lambda x: MAKERS[name]("sim:0", x.shape[0]))(x), wanted)
    same(tr.compile(lambda x: scoped(name, scope, x.shape[0]))(x), wanted)


def scoped(name, scope, n):
    with SCOPES[scope]():
        return MAKERS[name]("sim:0", n)


def same(found, wanted):
    assert found.spec is wanted.spec
    np.testing.assert_array_equal(np.asarray(found.to_device("cpu:0")), np.asarray(wanted.to_device("cpu:0")))


def test_the_scope_decides_about_what_is_computed_with_it():
    with tr.compute_device("sim:1"), pytest.raises(AmbiguousPlacementError, match="was asked to run on sim:1"):
        tr.zeros(3, device="sim:0") * 2
