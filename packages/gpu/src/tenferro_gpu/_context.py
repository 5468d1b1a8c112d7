"""Contexts: a device of this package as an explicit object, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from tenferro_gpu._stack import Capabilities, capabilities, checked_index
from tenferro_tensor import ComputeDevice

_C = TypeVar("_C", bound="_Context")


@dataclass(frozen=True, slots=True)
class _Context:
    """Execution on one device, for ``with compute_context(...)``.

    Attributes:
        index: number of the device.
    """

    kind: ClassVar[str]
    index: int

    @classmethod
    def for_device(cls: type[_C], index: int) -> _C:
        """The context of device `index`.

        Raises:
            BackendUnavailableError: there is no such device.
        """
        return cls(checked_index(cls.kind, index))

    @property
    def device(self) -> ComputeDevice:
        """The device that work runs on."""
        return ComputeDevice(f"{self.kind}:{self.index}")

    @property
    def capabilities(self) -> Capabilities:
        """What the device can do."""
        return capabilities(self.kind, self.index)


class CudaContext(_Context):
    """Execution on one NVIDIA device; make one with `for_device`."""

    __slots__ = ()
    kind = "cuda"


class RocmContext(_Context):
    """Execution on one AMD device; make one with `for_device`."""

    __slots__ = ()
    kind = "rocm"
