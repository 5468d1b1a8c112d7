"""Kernels of creation."""

from functools import partial
from typing import Any

import numpy as np

from tenferro_tensor._place import Place
from tenferro_tensor._primitive import is_open
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import creation as ops
from tenferro_tensor.reference._table import Ints, Kernel, Special, Table, any_size, with_sizes


def _along(shape: Any, axis: int) -> Any:
    """The shape with extent 1 for all axes but one."""
    return tuple([n if i == axis else 1 for i, n in enumerate(shape)])


def _iota_sizes(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Any, axis: int, **_: Any) -> tuple[Any, ...]:
    return shape[axis], _along(shape, axis), shape


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    @with_sizes(_iota_sizes)
    def iota(
        ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Ints, dtype: np.dtype[Any], axis: int, place: Place
    ) -> Kernel:
        if is_open(shape):
            return lambda n, aligned, shape: counted(n, aligned, shape, dtype)
        n = shape[axis]
        aligned = _along(shape, axis)
        return lambda: counted(n, aligned, shape, dtype)

    def counted(n: int, aligned: Ints, shape: Ints, dtype: np.dtype[Any]) -> Any:
        # Count in int64 first: numbers beyond the range of a small dtype then wrap around.
        numbers = xp.arange(n).astype(dtype).reshape(aligned)
        return numbers if aligned == shape else xp.broadcast_to(numbers, shape)

    @with_sizes(lambda ins, outs, size, place: (size,))
    def dim_value(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, size: int, place: Place) -> Kernel:
        if is_open(size):
            return np.int64 if xp is np else partial(xp.asarray, dtype=np.int64)
        if xp is not np:  # created in each call, on the current device and stream
            return lambda: xp.asarray(size, np.int64)
        number = np.int64(size)
        return lambda: number

    @any_size
    def define_size(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, size: Any) -> Kernel:
        return lambda k: k.astype(np.int64)

    return {ops.iota: iota, ops.dim_value: dim_value, ops.define_size: define_size}
