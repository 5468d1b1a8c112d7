"""`CpuContext`: the execution resources of the CPU as an explicit object."""

from dataclasses import dataclass
from typing import Final

from tenferro_tensor import ComputeDevice
from tenferro_tensor_core import PlacementError

CALLER: Final = ComputeDevice("cpu:0")
"""The calling thread."""


@dataclass(frozen=True, slots=True)
class CpuContext:
    """Execution on the CPU, for ``with compute_context(...)``.

    Attributes:
        device: the device that work runs on; ``cpu:0`` is the calling thread.

    Raises:
        PlacementError: the device is not one of this backend.

    >>> CpuContext()
    CpuContext(device=ComputeDevice('cpu:0'))
    """

    device: ComputeDevice = CALLER

    def __post_init__(self) -> None:
        device = ComputeDevice(self.device)
        if device is not CALLER:
            raise PlacementError(
                f"a CpuContext was asked for on {device}, but the CPU backend offers cpu:0 alone; use that, "
                "or the context of the backend that offers the device",
                device=str(device),
            )
        object.__setattr__(self, "device", device)
