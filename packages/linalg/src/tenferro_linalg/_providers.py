"""What the kernels compute with: one object per kind of device, with the same methods.

`Host` stands on NumPy and SciPy, `tenferro_linalg._cuda.Device` on CuPy. A kernel maker takes the provider first,
then what every kernel maker takes: operand specs, output specs and metadata.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from tenferro_runtime.extension import Primitive, Registry

Maker = Callable[..., Callable[..., Any]]


@cache
def host() -> Any:
    """The provider of the CPU."""
    from tenferro_linalg._host import Host

    return Host()


@cache
def device() -> Any:
    """The provider of CUDA and ROCm devices."""
    from tenferro_linalg._cuda import Device

    return Device()


def kernels(registry: Registry, primitive: Primitive, make: Maker, *, any_size: bool = False) -> None:
    """Register one kernel maker for every backend that has a provider.

    Args:
        registry: where.
        primitive: whose kernel it makes.
        make: the maker, with the provider as its first argument.
        any_size: whether it never looks at extents, so that its kernels are right for all of them.
    """

    def on_host(ins: Any, outs: Any, **p: Any) -> Callable[..., Any]:
        return make(host(), ins, outs, **p)

    def on_device(ins: Any, outs: Any, **p: Any) -> Callable[..., Any]:
        return make(device(), ins, outs, **p)

    on_host.blas = True  # type: ignore[attr-defined]
    on_host.any_size = on_device.any_size = any_size  # type: ignore[attr-defined]
    registry.kernel(primitive, "cpu", on_host)
    for backend in ("cuda", "rocm"):
        registry.kernel(primitive, backend, on_device)
