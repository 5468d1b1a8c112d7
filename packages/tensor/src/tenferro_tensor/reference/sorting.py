"""Kernels of sorting and searching.

NumPy sorts in ascending order with NaN last. Descending order is the ascending order of reversed keys, so NaN stays
last and equal elements keep their order.
"""

from typing import Any

from tenferro_tensor._spec import Spec
from tenferro_tensor.catalog import sorting as ops
from tenferro_tensor.reference._table import Kernel, Special, Table, any_size


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    @any_size
    def sort(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int, descending: bool) -> Kernel:
        if not descending:
            return lambda x: xp.sort(x, axis)
        key = reversed_key(ins[0])
        return lambda x: key(xp.sort(key(x), axis))

    @any_size
    def argsort(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int, descending: bool) -> Kernel:
        if not descending:
            return lambda x: xp.argsort(x, axis, kind="stable")
        key = reversed_key(ins[0])
        return lambda x: xp.argsort(key(x), axis, kind="stable")

    @any_size
    def searchsorted(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, side: str) -> Kernel:
        return lambda sorted1d, values: xp.searchsorted(sorted1d, values, side)

    def reversed_key(x: Spec) -> Kernel:
        """An order-reversing involution on a dtype; no integer overflows."""
        return xp.negative if x.inexact else xp.invert  # type: ignore[no-any-return]

    return {ops.sort: sort, ops.argsort: argsort, ops.searchsorted: searchsorted}
