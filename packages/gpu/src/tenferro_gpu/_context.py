"""Contexts: a device of this package with a stream of its own, checked when it is made."""

from __future__ import annotations

from typing import ClassVar, Self

from tenferro_tensor import Capabilities, ComputeDevice, StreamContext


class _GpuContext(StreamContext):
    """Execution on a stream of its own on one device, for ``with compute_context(...)``."""

    __slots__ = ()
    kind: ClassVar[str]

    @classmethod
    def for_device(cls, device: int | str | ComputeDevice) -> Self:
        """The context that is kept for a device, by number or name.

        Raises:
            BackendUnavailableError: there is no such device.
        """
        return super().for_device(f"{cls.kind}:{device}" if isinstance(device, int) else device)

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the device."""
        return self.runtime_device.capabilities


class CudaContext(_GpuContext):
    """Execution on one NVIDIA device; get one with `for_device`."""

    __slots__ = ()
    kind = "cuda"


class RocmContext(_GpuContext):
    """Execution on one AMD device; get one with `for_device`."""

    __slots__ = ()
    kind = "rocm"
