"""The concrete tensor, the primitive catalog, places and devices, and the contract that backends fulfil."""

from typing import TYPE_CHECKING

from tenferro_tensor import catalog
from tenferro_tensor._accelerator import AcceleratorBackend
from tenferro_tensor._array import Array
from tenferro_tensor._fallback import HostKernel, falling_back, host_fallback
from tenferro_tensor._host_kernel import has_host_kernel, host_kernel
from tenferro_tensor._known import Interval, LinearForm
from tenferro_tensor._levels import next_level
from tenferro_tensor._libraries import library
from tenferro_tensor._place import HOST, ComputeDevice, MemorySpace, Place
from tenferro_tensor._primitive import Op, Primitive, primitive, primitives
from tenferro_tensor._registration import Registration
from tenferro_tensor._registry import REGISTRY, Cost, Registry
from tenferro_tensor._size import Size
from tenferro_tensor._sized import sized
from tenferro_tensor._spec import MAX_AXES, Spec
from tenferro_tensor._synchronize import synchronize, synchronize_all
from tenferro_tensor._tensor import Tensor, tensor
from tenferro_tensor.backends import Backend, OpenKernel, available_backends, get_backend
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.class_home import class_home
from tenferro_tensor.device_runtimes import (
    AcceleratorMismatchError,
    AsynchronousError,
    Capabilities,
    DeviceMemoryError,
    DeviceRuntime,
    Event,
    ForkedRuntimeError,
    Pending,
    RuntimeDevice,
    Stream,
    StreamContext,
    current_stream,
    device_runtime,
    register_device_runtime,
)
from tenferro_tensor.dispatch import ComputeContext, compute_context, compute_device
from tenferro_tensor.entries import clear_plans, plan_stats
from tenferro_tensor.promotion import broadcast_shapes
from tenferro_tensor.transfers import no_transfers

if not TYPE_CHECKING:
    __getattr__ = class_home(__name__)

__all__ = [
    "HOST",
    "MAX_AXES",
    "REGISTRY",
    "SCALARS",
    "AcceleratorBackend",
    "AcceleratorMismatchError",
    "Array",
    "AsynchronousError",
    "Backend",
    "Capabilities",
    "ComputeContext",
    "ComputeDevice",
    "Cost",
    "DeviceMemoryError",
    "DeviceRuntime",
    "Event",
    "ForkedRuntimeError",
    "HostKernel",
    "Interval",
    "LinearForm",
    "MemorySpace",
    "Op",
    "OpenKernel",
    "Pending",
    "Place",
    "Primitive",
    "Registration",
    "Registry",
    "RuntimeDevice",
    "Size",
    "Spec",
    "Stream",
    "StreamContext",
    "Tensor",
    "available_backends",
    "broadcast_shapes",
    "catalog",
    "clear_plans",
    "compute_context",
    "compute_device",
    "current_stream",
    "device_runtime",
    "falling_back",
    "get_backend",
    "host_fallback",
    "has_host_kernel",
    "host_kernel",
    "library",
    "next_level",
    "no_transfers",
    "plan_stats",
    "primitive",
    "primitives",
    "register_device_runtime",
    "sized",
    "synchronize",
    "synchronize_all",
    "tensor",
]


def __dir__() -> list[str]:
    return __all__.copy()
