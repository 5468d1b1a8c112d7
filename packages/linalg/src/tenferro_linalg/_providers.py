"""Providers, with which kernels compute: one object per kind of device, all with the same methods.

`HostProvider` uses NumPy and SciPy, `CupyProvider` uses CuPy, and other backends register theirs through
`tenferro_linalg.providers`. A kernel maker takes the provider first, then the arguments of every kernel maker: operand
specs, output specs and metadata.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import Primitive, Providers, Registry, get_backend
from tenferro_tensor.device_runtimes import current_checks, deferred_checks
from tenferro_tensor_core.forks import importing

Maker = Callable[..., Callable[..., Any]]


def nothing(ins: Any, outs: Any, **_: Any) -> tuple[()]:
    """No size arguments: the kernel is valid for all sizes."""
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
        from tenferro_linalg._array_provider import CupyProvider

    return CupyProvider(get_backend(backend).library)


PROVIDERS: Final = Providers("linalg", {"cpu": host, "cuda": partial(device, "cuda"), "rocm": partial(device, "rocm")})


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
        registry: the registry.
        primitive: the primitive.
        make: the maker, with the provider as its first argument; it must not inspect extents.
        sizes: ``sizes(ins, outs, **params)``, the further arguments of its kernels after the operands.
        blas: whether they spend their time in BLAS or LAPACK.
        devices: whether device libraries support them.
    """
    register = PROVIDERS.kernels if devices else PROVIDERS.host_kernel
    register(registry, primitive, partial(_made, make), sizes=sizes, blas=blas)


def _made(make: Maker, la: Any, ins: Any, outs: Any, **params: Any) -> Callable[..., Any]:
    run = make(la, ins, outs, **params)
    return run if la.xp is np else partial(_checked_once, run)


def _checked_once(run: Callable[..., Any], *raws: Any) -> Any:
    """Run a kernel on a device, for which the host waits once: operands and results are checked together."""
    if current_checks() is not None:
        return run(*raws)
    with deferred_checks():
        return run(*raws)
