"""Puts a simulated accelerator into the process for the time of a test, and holds it to having left nothing behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from simulated.backend import SimBackend
from simulated.runtime import SimRuntime
from tenferro_runtime import current_runtime
from tenferro_tensor import backends as backends
from tenferro_tensor import device_runtime, register_device_runtime
from tenferro_tensor.device_runtimes._registry import PROCESS, DeviceRuntimes


@contextmanager
def no_accelerator() -> Iterator[None]:
    """The process uses no accelerator, and nothing is registered; afterwards all is as before."""
    before = {name: value for name, value in vars(PROCESS).items() if name != "_lock"}
    fresh = {name: value for name, value in vars(DeviceRuntimes()).items() if name != "_lock"}
    cpu = {name: backend for name, backend in backends._made.items() if name == "cpu"}
    with mock.patch.dict(os.environ), mock.patch.dict(backends._made, cpu, clear=True):
        os.environ.pop("TENFERRO_ACCELERATOR", None)
        vars(PROCESS).update(fresh)
        try:
            yield
        finally:
            if PROCESS.used is not None:
                current_runtime().clear()  # programs may hold kernels of the devices, and numbers in their memory
            vars(PROCESS).update(before)


@contextmanager
def simulated(*, hazards: bool = False, backend: type[SimBackend] = SimBackend, **options: Any) -> Iterator[SimRuntime]:
    """The devices ``sim:0`` to ``sim:3``.

    Args:
        hazards: whether the test makes hazards, and looks at them itself.
        backend: makes the kernels.
        options: of `SimRuntime`.
    """
    with no_accelerator():
        register_device_runtime("sim", lambda: SimRuntime(**options), backend=backend)
        runtime: Any = device_runtime("sim")
        try:
            yield runtime
            if not hazards:
                assert not runtime.checker.hazards, "\n".join(map(str, runtime.checker.hazards[:5]))
        finally:
            runtime.close()
