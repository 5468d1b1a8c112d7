"""The CUDA and ROCm backends: the reference kernels on CuPy arrays, each run on the device that it was made for.

CuPy's current device is a hidden argument of every allocation and launch. It is entered around each kernel and
restored after it, so that results do not depend on what the caller's program has made current.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import numpy as np

from tenferro_gpu._stack import checked_index, cupy, device_count
from tenferro_tensor import REGISTRY, Backend, ComputeDevice, Op, OpenKernel, Spec, catalog
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import UnsupportedError


class _CupyBackend(Backend):
    """What the two kinds share; CuPy has one interface for both."""

    kind: ClassVar[str]

    def __init__(self) -> None:
        self.name = self.kind
        self._cupy = cupy(self.kind)

    def devices(self) -> tuple[ComputeDevice, ...]:
        """The devices that the driver shows."""
        return tuple(ComputeDevice(f"{self.kind}:{i}") for i in range(device_count(self.kind)))

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """The kernel, with `device` current while it runs."""
        return self._on(device, super().kernel(op, ins, outs, device))

    def open_kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> OpenKernel | None:
        """The kernel for all sizes, with `device` current while it runs."""
        found = super().open_kernel(op, ins, outs, device)
        return found and found._replace(run=self._on(device, found.run))

    def _on(self, device: ComputeDevice, run: Callable[..., Any]) -> Callable[..., Any]:
        on = self._cupy.cuda.Device(checked_index(self.kind, device.index))

        def run_on_device(*raws: Any) -> Any:
            with on:
                return run(*raws)

        return run_on_device

    def upload(self, array: np.ndarray[Any, Any], device: ComputeDevice) -> Any:
        """A copy in the memory of `device`."""
        with self._cupy.cuda.Device(checked_index(self.kind, device.index)):
            return self._cupy.asarray(array)

    def download(self, raw: Any) -> np.ndarray[Any, Any]:
        """A copy in main memory; waits for the work that computes it."""
        with raw.device:
            return self._cupy.asnumpy(raw)  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        """Wait for all work on all devices."""
        for device in self.devices():
            with self._cupy.cuda.Device(device.index) as current:
                current.synchronize()


class CudaBackend(_CupyBackend):
    """NVIDIA devices ``cuda:<i>``.

    Raises:
        BackendUnavailableError: CuPy, the driver or a device is missing; the text says what to do.
    """

    kind = "cuda"


class RocmBackend(_CupyBackend):
    """AMD devices ``rocm:<i>``.

    Raises:
        BackendUnavailableError: CuPy for ROCm, the driver or a device is missing; the text says what to do.
    """

    kind = "rocm"


_B = TypeVar("_B", bound=_CupyBackend)


def make_cuda_backend() -> CudaBackend:
    """The CUDA backend, its kernels registered; the entry point that `get_backend` calls."""
    return _registered(CudaBackend())


def make_rocm_backend() -> RocmBackend:
    """The ROCm backend, its kernels registered; the entry point that `get_backend` calls."""
    return _registered(RocmBackend())


def _registered(backend: _B) -> _B:
    for primitive, make in _reference(backend.kind).items():
        REGISTRY.kernel(primitive, backend.kind, make)
    return backend


@cache
def _reference(kind: str) -> dict[Any, Any]:
    table = kernels(cupy(kind), lambda: import_module("cupyx.scipy.special"))
    table[catalog.scatter] = _without_products(table[catalog.scatter])
    return table


def _without_products(make: Callable[..., Any]) -> Callable[..., Any]:
    """CuPy has no atomic product, so that duplicate indices would lose factors."""

    def make_checked(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, mode: str, **params: Any) -> Callable[..., Any]:
        if mode == "mul":
            raise UnsupportedError(
                "scatter with mode='mul' has no kernel on accelerators; move the operands with to_device('cpu:0')",
                mode=mode,
            )
        return make(ins, outs, mode=mode, **params)  # type: ignore[no-any-return]

    return make_checked
