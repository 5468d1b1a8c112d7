"""The contract of accelerators (devices, streams, events, copies), and the registry of the one that a process uses."""

from tenferro_tensor.device_runtimes._checks import DeferredChecks, check, current_checks, deferred_checks
from tenferro_tensor.device_runtimes._context import StreamContext, current_stream
from tenferro_tensor.device_runtimes._contracts import (
    Capabilities,
    DeviceRuntime,
    Event,
    Pending,
    RuntimeDevice,
    Stream,
    require_destination,
)
from tenferro_tensor.device_runtimes._errors import (
    AcceleratorMismatchError,
    AsynchronousError,
    DeviceMemoryError,
    ForkedRuntimeError,
)
from tenferro_tensor.device_runtimes._registry import device_runtime, register_device_runtime

__all__ = [
    "AcceleratorMismatchError",
    "AsynchronousError",
    "Capabilities",
    "DeferredChecks",
    "DeviceMemoryError",
    "DeviceRuntime",
    "Event",
    "ForkedRuntimeError",
    "Pending",
    "RuntimeDevice",
    "Stream",
    "StreamContext",
    "check",
    "current_checks",
    "current_stream",
    "deferred_checks",
    "device_runtime",
    "register_device_runtime",
    "require_destination",
]


def __dir__() -> list[str]:
    return __all__.copy()
