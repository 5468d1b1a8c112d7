"""Kernels of special functions: functions of SciPy and CuPy, and functions written with NumPy in double precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime.extension import BackendUnavailableError, UnsupportedError, get_backend
from tenferro_tensor import HostKernel, falling_back

__all__ = ["Library", "host_kernels", "host_special", "in_library", "orders_of", "scipy_kernels"]

ACCELERATORS = ("cuda", "rocm")
"""Backends whose library may have a function of `scipy.special`."""

Library = Callable[..., Callable[..., Any] | None]
"""The function of an accelerator's library: takes its `scipy.special` and the metadata, returns None if it has none."""

Makers = dict[str, Callable[..., Any]]
"""The maker of the kernel for each backend."""


def host_special() -> Any:
    """The module `scipy.special`, imported on first use.

    Raises:
        BackendUnavailableError: SciPy is not installed.
    """
    try:
        return get_backend("cpu").library("scipy.special")
    except ModuleNotFoundError as error:
        raise BackendUnavailableError(
            "special functions are computed by SciPy, which is not installed; pip install 'tenferro-runtime[special]'"
        ) from error


def orders_of(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    """The orders of the derivative that a primitive's metadata name, one each or all in ``orders``."""
    return metadata["orders"] if "orders" in metadata else tuple(metadata.values())


def in_library(name: str) -> Library:
    """The function of that name, where all orders of derivatives are 0."""
    return lambda special, **metadata: None if any(orders_of(metadata)) else getattr(special, name)


def scipy_kernels(name: str, pick: int | None = None, instead: Callable[..., Any] | None = None) -> Makers:
    """The kernels of a function of `scipy.special`.

    Args:
        name: the function.
        pick: which of its results is taken if it returns several.
        instead: makes the kernel for an accelerator whose library lacks the function.
    """
    return {backend: partial(_make_scipy, backend, name, pick, instead) for backend in ("cpu", *ACCELERATORS)}


def host_kernels(
    compute: Callable[..., Any], value: str | None = None, lack: str = "", library: Library | None = None
) -> Makers:
    """The kernels of a function that NumPy computes.

    Args:
        compute: ``compute(*operands, **metadata)`` of arrays of one dimension in double precision, at least one
            element long; returns an array of that length.
        value: the function of `scipy.special` that it is where all orders of derivatives are 0.
        lack: what accelerators have no kernel for, its derivatives.
        library: their kernel, if it is not `value` of their library.
    """

    def on_host(ins: Any, outs: Any, **metadata: Any) -> Callable[..., Any]:
        if value is not None and not any(orders_of(metadata)):
            return _make_scipy("cpu", value, None, None, ins, outs)
        return _in_double_precision(partial(compute, **metadata), outs[0])

    def elsewhere(backend: str, ins: Any, outs: Any, **metadata: Any) -> Callable[..., Any]:
        if library is not None:
            function = library(get_backend(backend).library("scipy.special"), **metadata)
            if function is not None:
                return _of_dtype(function, outs[0].dtype)
        elif value is not None and not any(orders_of(metadata)):
            return _make_scipy(backend, value, None, None, ins, outs)
        return _lent(f"{lack} has no kernel", backend, on_host, ins, outs, metadata)

    served = ACCELERATORS if value is not None or library is not None else ()
    return {"cpu": on_host, **{backend: partial(elsewhere, backend) for backend in served}}


def _make_scipy(
    backend: str, name: str, pick: int | None, instead: Callable[..., Any] | None, ins: Any, outs: Any
) -> Callable[..., Any]:
    special = host_special() if backend == "cpu" else get_backend(backend).library("scipy.special")
    function = getattr(special, name, None)
    if function is None:
        if backend == "cpu":
            raise UnsupportedError(f"{special.__name__} of this version has no {name}; install a newer one")
        if instead is not None:
            return instead(ins, outs)  # type: ignore[no-any-return]
        lack = f"{special.__name__} has no {name}, which therefore has no kernel"
        return _lent(lack, backend, partial(_make_scipy, "cpu", name, pick, None), ins, outs, {})
    picked = function if pick is None else lambda *operands: function(*operands)[pick]
    if pick is not None or any(s.dtype not in ("float64", "complex128") for s in ins):
        return _of_dtype(picked, outs[0].dtype)
    return picked


def _of_dtype(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """The function with results of a dtype: some functions have double precision only."""

    def run(*operands: Any) -> Any:
        out = function(*operands)
        return out if out.dtype == dtype else out.astype(dtype)

    return run


def _in_double_precision(compute: Callable[..., Any], out: Any) -> Callable[..., Any]:
    dtype, wide = out.dtype, np.dtype(np.complex128 if out.cplx else np.float64)

    def run(*operands: Any) -> Any:
        same = [np.asarray(x, wide) for x in operands]
        if len(same) > 1:
            same = list(np.broadcast_arrays(*same))
        shape = same[0].shape
        if not same[0].size:
            return np.empty(shape, dtype)
        with np.errstate(all="ignore"):
            return np.asarray(compute(*[x.reshape(-1) for x in same])).astype(dtype, copy=False).reshape(shape)

    return run


def _lent(
    lack: str, backend: str, on_host: Callable[..., Any], ins: Any, outs: Any, metadata: Mapping[str, Any]
) -> HostKernel:
    """The kernel of the CPU in the place of one that an accelerator lacks, where `host_fallback` allows it.

    Raises:
        UnsupportedError: it is not allowed.
    """
    device = outs[0].place.device

    def refusal() -> UnsupportedError:
        return UnsupportedError(
            f"{lack} for {device}; move the operands with to_device, or let the CPU compute it in "
            "`with host_fallback():`",
            device=str(device),
        )

    if not falling_back():
        raise refusal()
    return HostKernel(get_backend(backend), device, on_host, ins, outs, metadata, refusal)
