"""Kernels of reductions."""

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import reduction as ops
from tenferro_tensor.reference._table import Ints, Kernel, Special, Table, any_size, unchanged

Reduction = Callable[..., Kernel]


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`; they call the methods of its arrays."""
    return {
        ops.reduce_sum: _in_own_dtype("sum"),
        ops.reduce_prod: _in_own_dtype("prod"),
        ops.reduce_max: _over_axes("max"),
        ops.reduce_min: _over_axes("min"),
        ops.reduce_all: _over_axes("all"),
        ops.reduce_any: _over_axes("any"),
        ops.argmax: _along_axis("argmax"),
        ops.argmin: _along_axis("argmin"),
    }


def _numpy_axis(axes: Ints, x: Spec) -> int | Ints | None:
    """The form of `axes` that NumPy handles fastest."""
    if len(axes) == x.ndim:
        return None
    return axes[0] if len(axes) == 1 else axes


def _over_axes(method: str) -> Reduction:
    @any_size
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axes: Ints) -> Kernel:
        if not axes:
            return unchanged
        axis = _numpy_axis(axes, ins[0])
        return methodcaller(method, axis)

    return make


def _in_own_dtype(method: str) -> Reduction:
    """By default, NumPy widens sums of small integers and booleans."""
    widened = _over_axes(method)

    @any_size
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axes: Ints) -> Kernel:
        dtype = outs[0].dtype
        if not axes or outs[0].inexact:
            return widened(ins, outs, axes=axes)
        axis = _numpy_axis(axes, ins[0])
        return methodcaller(method, axis, dtype=dtype)

    return make


def _along_axis(method: str) -> Reduction:
    @any_size
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int) -> Kernel:
        return methodcaller(method, axis)

    return make
