"""Contractions on 8 devices of XLA: values, gradients, memory as planned, and devices that are lost."""

import os
from concurrent.futures import Future
from typing import Any

import jax
import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import einsum, plan, run_on
from tenferro_tensor_core import ArgumentError, BackendUnavailableError
from tenferro_xla import DeviceWorkers, LocalDevice, LostDeviceError, XlaWorkers
from tenferro_xla.mesh import Mesh, MeshExecutable, P


class Recorded(XlaWorkers):
    """Keeps the programs."""

    def __init__(self) -> None:
        super().__init__()
        self.programs: list[Any] = []

    def submit_program(self, program: Any, arrays: Any) -> Future[Any]:
        self.programs.append(program)
        return super().submit_program(program, arrays)


class Losing(LocalDevice):
    """A device that is lost in the task with a number."""

    def __init__(self, at: int) -> None:
        super().__init__("cpu", 0)
        self.left = at

    def run(self, program: Any, arrays: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise LostDeviceError("it was unplugged")
        return super().run(program, arrays)


def network(n: int, bond: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [tr.asarray(rng.standard_normal((n, n, bond))) for _ in range(3)]


def bytes_by_xla(program: Any) -> int:
    """Results and temporaries of a program on one device."""
    mesh = Mesh({"data": 1}, jax.devices()[:1])
    memory = MeshExecutable(mesh, program, [P()] * len(program.inputs), [P()] * len(program.outputs)).memory()
    return memory.results + memory.temporaries


@pytest.mark.parametrize(
    ("subscripts", "shape", "copies"),
    [("ija,jkb,klc,lid->abcd", (24, 24, 12), 1), ("abi,bcj,cak->ijk", (64, 64, 16), 1.35)],
)
def test_a_network_over_8_devices_needs_an_eighth_of_the_memory_on_each(
    subscripts: str, shape: tuple[int, ...], copies: float
) -> None:
    """The plan against XLA's own analysis of the program of one device; XLA may copy parts that it turns round."""
    rng = np.random.default_rng(0)
    xs = [tr.asarray(rng.standard_normal(shape)) for _ in subscripts.split(",")]
    whole = plan(subscripts, *xs)
    cut = plan(subscripts, *xs, memory_budget=whole.peak_bytes // 8)
    assert cut.slicing is not None and cut.slicing.count >= 8 and cut.peak_bytes <= whole.peak_bytes / 8
    with Recorded() as devices, run_on(devices, tasks=8):
        np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)), rtol=1e-10, atol=1e-9)
    assert len(devices.devices) == len(devices.programs) == 8
    alone = bytes_by_xla(tr.trace(lambda *xs: einsum(subscripts, *xs), *xs))
    for program in {*devices.programs}:
        assert bytes_by_xla(program) <= min(copies * cut.peak_bytes, alone / 8)


def test_gradients_come_from_the_devices() -> None:
    xs = network(8, 3)
    whole = plan("abi,bcj,cak->ijk", *xs)
    cut = plan("abi,bcj,cak->ijk", *xs, memory_budget=whole.backward_peak_bytes // 2)
    loss = lambda f: grad(lambda *xs: tr.sum(f(*xs) ** 2), argnums=(0, 1, 2))
    with XlaWorkers(indices=[5, 2]) as devices, run_on(devices, tasks=2):
        found = loss(cut)(*xs)
    for a, b in zip(found, loss(whole)(*xs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-11, atol=1e-10)
    assert devices.devices == ("cpu:5", "cpu:2")


def test_the_tasks_of_lost_devices_go_to_the_others() -> None:
    xs = network(8, 3)
    whole = plan("abi,bcj,cak->ijk", *xs)
    cut = plan("abi,bcj,cak->ijk", *xs, memory_budget=whole.peak_bytes // 2)
    with DeviceWorkers([Losing(0), Losing(1), LocalDevice("cpu", 1)]) as devices, run_on(devices, tasks=8, retries=0):
        np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)), rtol=1e-11, atol=1e-10)
    assert {*devices.lost} <= {"it was unplugged"}
    program = tr.trace(lambda x: x + 1, np.ones(2))
    with DeviceWorkers([Losing(0)]) as devices:
        futures = [devices.submit_program(program, [np.ones(2)]) for _ in range(3)]
        for future in futures[:1]:
            with pytest.raises(LostDeviceError, match="it was unplugged"):
                future.result(timeout=60)
        with pytest.raises(RuntimeError, match="all workers are lost: it was unplugged"):
            devices.submit(os.getpid)


def test_functions_are_tasks_too_and_errors_come_back() -> None:
    devices = XlaWorkers(indices=[0])
    assert devices.submit(divmod, 7, 2).result() == (3, 1)
    with pytest.raises(ZeroDivisionError):
        devices.submit(divmod, 7, 0).result()
    devices.shutdown()
    with pytest.raises(RuntimeError, match="the workers have been shut down"):
        devices.submit(divmod, 7, 2)


def test_devices_are_numbered_each_once() -> None:
    for wrong in ([], [1, 1]):
        with pytest.raises(ArgumentError, match="the indices of one or more devices without duplicates"):
            XlaWorkers(indices=wrong)
    with pytest.raises(BackendUnavailableError, match="no device cpu:8"):
        XlaWorkers(indices=[8])
