"""Providers, which kernels compute with: one object per kind of device, with the same methods.

`HostProvider` uses NumPy and SciPy, `tenferro_linalg._cuda.CudaProvider` uses CuPy. A kernel maker takes the provider
first, then the arguments of every kernel maker: operand specs, output specs and metadata.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from tenferro_runtime.extension import Primitive, Registry, get_backend, sized
from tenferro_tensor_core.forks import importing

Maker = Callable[..., Callable[..., Any]]


def nothing(ins: Any, outs: Any, **_: Any) -> tuple[()]:
    """The sizes of kernels that are right for all."""
    return ()


def size_of(ins: Any, outs: Any, *, size: Any, **_: Any) -> tuple[Any, ...]:
    """The metadata `size`, for kernels that take it."""
    return (size,)


@cache
def host() -> Any:
    """The provider of the CPU."""
    with importing():
        from tenferro_linalg._host import HostProvider

    return HostProvider()


@cache
def device(backend: str) -> Any:
    """The provider of CUDA or ROCm devices."""
    with importing():
        from tenferro_linalg._cuda import CudaProvider

    return CudaProvider(get_backend(backend).library)


def _on_device(make: Maker, backend: str, ins: Any, outs: Any, **p: Any) -> Callable[..., Any]:
    return make(device(backend), ins, outs, **p)


def kernels(
    registry: Registry,
    primitive: Primitive,
    make: Maker,
    *,
    sizes: Callable[..., Any] = nothing,
    blas: bool = True,
    devices: bool = True,
) -> None:
    """Register one kernel maker for every backend that has a provider.

    Args:
        registry: where.
        primitive: whose kernel it makes.
        make: the maker, with the provider as its first argument; it never looks at extents.
        sizes: ``sizes(ins, outs, **params)``, what its kernels take after the operands.
        blas: whether they spend their time in BLAS or LAPACK.
        devices: whether the libraries of CUDA and ROCm devices have what it takes.
    """

    @sized(sizes)
    def on_host(ins: Any, outs: Any, **p: Any) -> Callable[..., Any]:
        return make(host(), ins, outs, **p)

    on_host.blas = blas  # type: ignore[attr-defined]
    registry.kernel(primitive, "cpu", on_host)
    for backend in ("cuda", "rocm") if devices else ():
        registry.kernel(primitive, backend, sized(sizes)(partial(_on_device, make, backend)))
