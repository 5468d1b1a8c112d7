"""`CpuBackend`: the reference kernels on NumPy, in the calling thread."""

from functools import cache
from typing import Any

import numpy as np

from tenferro_tensor import REGISTRY, Backend, ComputeDevice, library
from tenferro_tensor.reference import kernels


class CpuBackend(Backend):
    """Runs ops on NumPy arrays in main memory; `cpu:0` is the calling thread."""

    name = "cpu"

    def devices(self) -> tuple[ComputeDevice, ...]:
        """The calling thread; other pools do not exist yet."""
        return (ComputeDevice("cpu:0"),)

    def upload(self, array: np.ndarray[Any, Any], device: ComputeDevice) -> Any:
        """The array itself: it is in main memory already."""
        return array

    def download(self, raw: Any) -> np.ndarray[Any, Any]:
        """The array itself, a NumPy scalar as an array without axes."""
        return np.asarray(raw)

    def synchronize(self) -> None:
        """Nothing is pending: every kernel returns when it is done."""


def make_backend() -> CpuBackend:
    """The CPU backend, its kernels registered; the entry point that `get_backend` calls.

    >>> from tenferro_tensor import get_backend
    >>> get_backend("cpu").devices()
    (ComputeDevice('cpu:0'),)
    """
    for primitive, make in _reference().items():
        REGISTRY.kernel(primitive, CpuBackend.name, make)
    return CpuBackend()


@cache
def _reference() -> dict[Any, Any]:
    # One table for the process: registering the same makers again is no collision.
    return kernels(np, _special)


@cache
def _special() -> Any:
    # SciPy costs more to import than everything else together; few programs call a special function.
    return library("scipy.special")
