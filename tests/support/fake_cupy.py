"""A stand-in for CuPy on NumPy: arrays remember the device that was current when they were made.

It checks what a test without a GPU can check: that work runs with the right device current, that nothing mixes
devices or memories, and that the ambient device is restored.
"""

import types
from typing import Any, ClassVar

import numpy as np


class CUDARuntimeError(RuntimeError):
    """What CuPy raises where the driver fails."""


class DeviceArray(np.ndarray):
    """An array in the memory of a simulated device."""

    _device: Any

    def __array_finalize__(self, parent: Any) -> None:
        self._device = Device(FakeCupy.current)

    @property
    def device(self) -> Any:  # NumPy's own attribute of this name is always "cpu"
        return self._device

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = []
        for x in inputs:
            if isinstance(x, DeviceArray):
                assert x.device.id == FakeCupy.current, f"device {x.device.id}, not {FakeCupy.current}"
                plain.append(x.view(np.ndarray))
            else:
                assert not isinstance(x, np.ndarray), "an array in main memory in a kernel of the device"
                plain.append(x)
        kwargs.pop("out", None)
        return as_device(getattr(ufunc, method)(*plain, **kwargs))


def as_device(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(as_device, x))
    return np.asarray(x).view(DeviceArray) if isinstance(x, (np.ndarray, np.generic)) else x


class Device:
    """CuPy's device: a context manager that makes it current."""

    def __init__(self, index: int) -> None:
        self.id = index
        self._before: list[int] = []

    def __enter__(self) -> "Device":
        self._before.append(FakeCupy.current)
        FakeCupy.current = self.id
        return self

    def __exit__(self, *error: Any) -> None:
        FakeCupy.current = self._before.pop()

    def synchronize(self) -> None:
        FakeCupy.synchronized.append(self.id)


class FakeCupy(types.ModuleType):
    """The module; functions are NumPy's, their results are arrays of the current device."""

    current = 0
    synchronized: ClassVar[list[int]] = []

    def __init__(self, count: int = 2, is_hip: bool = False, failure: str | None = None) -> None:
        super().__init__("cupy")

        def get_device_count() -> int:
            if failure:
                raise CUDARuntimeError(failure)
            return count

        def properties(index: int) -> dict[str, Any]:
            return {"name": b"Simulated", "totalGlobalMem": 2**30, "warpSize": 32, "major": 9, "minor": 0,
                    "gcnArchName": b"gfx90a"}  # fmt: skip

        runtime = types.SimpleNamespace(is_hip=is_hip, getDeviceCount=get_device_count, getDeviceProperties=properties)
        self.cuda = types.SimpleNamespace(Device=Device, runtime=runtime)
        self.ndarray = DeviceArray
        FakeCupy.current, FakeCupy.synchronized = 0, []

    @staticmethod
    def asnumpy(x: Any) -> np.ndarray:
        assert x.device.id == FakeCupy.current
        return np.array(x.view(np.ndarray))

    @staticmethod
    def asarray(x: Any) -> Any:
        return as_device(np.array(x))

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, (type, np.dtype)) or not callable(found):
            return found
        if isinstance(found, np.ufunc):
            return found
        return lambda *args, **kwargs: as_device(found(*args, **kwargs))
