"""Kernels of the core primitives on CuPy arrays: the reference kernels, and others where these synchronize or are
unsupported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tenferro_gpu._stack import cupy
from tenferro_tensor import Spec, catalog, sized
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import UnsupportedError

Kernel = Callable[..., Any]


@cache
def core_kernels(kind: str) -> dict[Any, Any]:
    """The maker of every core primitive's kernel."""
    xp = cupy(kind)
    table = kernels(xp, lambda: import_module("cupyx.scipy.special"))
    return table | {
        catalog.scatter: _scatter(table[catalog.scatter]),
        catalog.dynamic_slice: _dynamic_slice(xp),
        catalog.dynamic_update_slice: _dynamic_update_slice(xp),
    }


def _scatter(reference: Any) -> Any:
    """CuPy combines elements atomically, for some dtypes only; the others are converted to one of these."""

    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, mode: str, **params: Any) -> Kernel:
        if mode == "mul":
            raise UnsupportedError(
                "scatter with mode='mul' has no kernel on accelerators, where duplicate indices would lose factors; "
                "move the operands with to_device('cpu:0')",
                mode=mode,
            )
        run: Kernel = reference(ins, outs, mode=mode, **params)
        carried = _carrier(ins[0].dtype, mode)
        if carried is None:
            return run
        there, back = carried
        return lambda x, at, updates, *sizes: back(run(there(x), at, there(updates), *sizes))

    make.sizes = reference.sizes  # type: ignore[attr-defined]
    return make


def _carrier(dtype: np.dtype[Any], mode: str) -> tuple[Kernel, Kernel] | None:
    """Conversion to a dtype that has the atomic operation and back; None if none is needed."""
    if mode == "set" or dtype.kind in "fc" or dtype.name in ("int32", "uint32", "uint64"):
        return None
    if dtype.itemsize < 4:  # sums wrap the same when they are narrowed
        return lambda x: x.astype("int32"), lambda y: y.astype(dtype)
    if mode == "add":
        return lambda x: x.view("uint64"), lambda y: y.view("int64")
    top = np.uint64(1 << 63)  # with the sign bit flipped, signed integers have the order of unsigned ones
    return lambda x: x.view("uint64") ^ top, lambda y: (y ^ top).view("int64")


def _positions(xp: Any, starts: Sequence[Any], sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The block of given extents at `starts`, clamped to the shape, as one index per axis.

    The values are not read on the host, which would synchronize with the device.
    """
    index = []
    for d, (start, size, n) in enumerate(zip(starts, sizes, shape, strict=True)):
        last = min(n - size, np.iinfo(start.dtype).max)  # CuPy may reject a bound outside the dtype
        first = xp.clip(start, 0, last).astype("int64")
        index.append((first + xp.arange(size)).reshape([size if e == d else 1 for e in range(len(shape))]))
    return tuple(index)


def _dynamic_slice(xp: Any) -> Any:
    @sized(lambda ins, outs, *, sizes: (sizes,))
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, sizes: tuple[int, ...]) -> Kernel:
        if not ins[0].ndim:
            return lambda x, sizes: x
        return lambda x, *more: x[_positions(xp, more[:-1], more[-1], x.shape)]

    return make


def _dynamic_update_slice(xp: Any) -> Any:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        def run(x: Any, update: Any, *starts: Any) -> Any:
            out = x.copy()
            out[_positions(xp, starts, update.shape, x.shape)] = update
            return out

        return run if ins[0].ndim else lambda x, update: update

    make.any_size = True  # type: ignore[attr-defined]
    return make
