"""Puts the simulated CuPy into the process for a while."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from fake_cupy import FakeCupy, fake_cupyx
from host_kernels import COMPILER, HostCompiler
from simulated.installed import no_accelerator
from tenferro_gpu import _kernels, _machine_code, _stack
from tenferro_linalg import _providers
from tenferro_tensor import REGISTRY, clear_plans
from tenferro_tensor import backends as backends
from tenferro_tensor_core import BackendUnavailableError


def forget() -> None:
    """Drop what the process has kept of CuPy."""
    for cached in (_stack.cupy, _kernels.core_kernels, _providers.device):
        cached.cache_clear()
    for kind in ("cuda", "rocm"):
        backends._made.pop(kind, None)
        for key in [k for k in REGISTRY._tables["kernel"] if k[1] == kind and k[0].extension is None]:
            del REGISTRY._tables["kernel"][key]
    clear_plans()


@contextmanager
def fresh_process() -> Iterator[None]:
    """A process that has used no accelerator, inside and afterwards."""
    with no_accelerator():
        forget()
        try:
            yield
        finally:
            forget()


def modules(**kind: Any) -> dict[str, Any]:
    """The simulated modules by name; `kind` is for `FakeCupy`."""
    return {"cupy": FakeCupy(**kind), **fake_cupyx()}


@contextmanager
def installed_cupy(**kind: Any) -> Iterator[FakeCupy]:
    """A process in which the simulated CuPy is installed; `kind` is for `FakeCupy`.

    What else is imported meanwhile stays: a module of primitives that is imported twice has them twice.
    """
    found = modules(**kind)
    before = {name: sys.modules.get(name) for name in found}
    with fresh_process():
        sys.modules.update(found)
        try:
            yield found["cupy"]
        finally:
            for name, module in before.items():
                del sys.modules[name]
                if module is not None:
                    sys.modules[name] = module


@contextmanager
def simulated_gpu() -> Iterator[FakeCupy]:
    """A process with the simulated CuPy, whose kernels the processor runs where there is a compiler for them."""

    def compiler(*given: Any) -> Any:
        if COMPILER is None:
            raise BackendUnavailableError("there is no g++ to compile rendered kernels with")
        return HostCompiler()

    with installed_cupy() as cupy, mock.patch.object(_machine_code, "compiler", compiler):
        yield cupy
