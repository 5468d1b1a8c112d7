"""Contexts: a device of this package with its own stream, validated on creation."""

from __future__ import annotations

from typing import ClassVar, Self

from tenferro_tensor import Capabilities, ComputeDevice, StreamContext


class _GpuContext(StreamContext):
    """Execution on a separate stream of one device, for ``with compute_context(...)``."""

    __slots__ = ()
    kind: ClassVar[str]

    @classmethod
    def for_device(cls, device: int | str | ComputeDevice) -> Self:
        """The cached context of a device.

        Args:
            device: number or name of the device.

        Returns:
            The context, the same object for every call.

        Raises:
            BackendUnavailableError: there is no such device.
        """
        return super().for_device(f"{cls.kind}:{device}" if isinstance(device, int) else device)

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the device."""
        return self.runtime_device.capabilities


class CudaContext(_GpuContext):
    """Execution on one NVIDIA device; create one with `for_device`."""

    __slots__ = ()
    kind = "cuda"


class RocmContext(_GpuContext):
    """Execution on one AMD device; create one with `for_device`."""

    __slots__ = ()
    kind = "rocm"
