"""Kernels of creation."""

from typing import Any

import numpy as np

from tenferro_tensor._place import Place
from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import creation as ops
from tenferro_tensor.reference._table import Ints, Kernel, Special, Table


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    def iota(
        ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: Ints, dtype: np.dtype[Any], axis: int, place: Place
    ) -> Kernel:
        n = shape[axis]
        aligned = tuple([n if i == axis else 1 for i in range(len(shape))])
        if aligned == shape:
            # Counting in int64 first: numbers beyond the range of a small dtype wrap.
            return lambda: xp.arange(n).astype(dtype).reshape(shape)
        return lambda: xp.broadcast_to(xp.arange(n).astype(dtype).reshape(aligned), shape)

    def dim_value(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, size: int, place: Place) -> Kernel:
        number = np.int64(size) if xp is np else xp.asarray(size, np.int64)
        return lambda: number

    def define_size(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, size: Any) -> Kernel:
        return lambda k: k.astype(np.int64)

    return {ops.iota: iota, ops.dim_value: dim_value, ops.define_size: define_size}
