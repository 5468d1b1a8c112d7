"""Kernels of special functions: functions of SciPy and CuPy, and functions written with NumPy in double precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime.extension import BackendUnavailableError, UnsupportedError, get_backend
from tenferro_tensor import HostKernel, falling_back

__all__ = ["host_kernels", "host_special", "orders_of", "scipy_kernels"]

ACCELERATORS = ("cuda", "rocm")
"""Backends whose library may have a function of `scipy.special`."""

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


def scipy_kernels(name: str, pick: int | None = None) -> Makers:
    """The kernels of a function of `scipy.special`, and which of its results is taken if it returns several."""
    return {backend: partial(_make_scipy, backend, name, pick) for backend in ("cpu", *ACCELERATORS)}


def host_kernels(compute: Callable[..., Any], value: str | None = None, lack: str = "") -> Makers:
    """The kernels of a function that NumPy computes.

    Args:
        compute: ``compute(*operands, **metadata)`` of arrays of one dimension in double precision, at least one
            element long; returns an array of that length.
        value: the function of `scipy.special` that it is where all orders of derivatives are 0.
        lack: what accelerators have no kernel for, its derivatives.
    """

    def on_host(ins: Any, outs: Any, **metadata: Any) -> Callable[..., Any]:
        if value is not None and not any(orders_of(metadata)):
            return _make_scipy("cpu", value, None, ins, outs)
        return _in_double_precision(partial(compute, **metadata), outs[0])

    def elsewhere(backend: str, ins: Any, outs: Any, **metadata: Any) -> Callable[..., Any]:
        if any(orders_of(metadata)):
            return _lent(f"{lack} has no kernel", backend, on_host, ins, outs, metadata)
        return _make_scipy(backend, str(value), None, ins, outs)

    return {"cpu": on_host, **{backend: partial(elsewhere, backend) for backend in ACCELERATORS if value is not None}}


def _make_scipy(backend: str, name: str, pick: int | None, ins: Any, outs: Any) -> Callable[..., Any]:
    special = host_special() if backend == "cpu" else get_backend(backend).library("scipy.special")
    function = getattr(special, name, None)
    if function is None:
        if backend == "cpu":
            raise UnsupportedError(f"{special.__name__} of this version has no {name}; install a newer one")
        lack = f"{special.__name__} has no {name}, which therefore has no kernel"
        return _lent(lack, backend, partial(_make_scipy, "cpu", name, pick), ins, outs, {})
    dtype = outs[0].dtype

    def run(*operands: Any) -> Any:
        out = function(*operands)
        if pick is not None:
            out = out[pick]
        # Some functions have double precision only.
        return out if out.dtype == dtype else out.astype(dtype)

    if pick is not None or any(s.dtype not in ("float64", "complex128") for s in ins):
        return run
    return function  # type: ignore[no-any-return]


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
