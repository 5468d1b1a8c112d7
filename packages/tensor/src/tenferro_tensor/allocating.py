"""`allocates`: the operations whose kernels return newly allocated memory, on every backend.

Compiled programs rely on it: they overwrite such results and release their memory as soon as nobody reads them. Kernels
of all other operations may return their operand, or a view of it, since values never change.
"""

from __future__ import annotations

from typing import Final

from tenferro_tensor import catalog
from tenferro_tensor._primitive import Op, Primitive

__all__ = ["allocates"]


def __dir__() -> list[str]:
    return __all__.copy()


_PASSING: Final = frozenset({
    catalog.stop_gradient, catalog.convert, catalog.real, catalog.imag, catalog.conj, catalog.floor, catalog.ceil,
    catalog.trunc, catalog.round,
})  # fmt: skip
"""Element-wise primitives that may return their operand itself, or a view of it."""

_REDUCTIONS: Final = frozenset({
    catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min, catalog.reduce_all,
    catalog.reduce_any,
})  # fmt: skip
"""Primitives that return their operand itself if there is no axis to reduce."""

_MAKING: Final = frozenset({p for p in vars(catalog).values() if isinstance(p, Primitive) and p.elementwise}) - _PASSING
_WRITING: Final = frozenset({
    catalog.scatter, catalog.dynamic_update_slice, catalog.update_slice, catalog.dot_general, catalog.dynamic_slice,
})  # fmt: skip


def allocates(op: Op) -> bool:
    """Whether the kernel of a core operation allocates its result, so that nothing aliases it.

    Args:
        op: the op.

    Returns:
        False if the result may be an operand, or a view of one.

    >>> allocates(catalog.add.op()), allocates(catalog.transpose.op(permutation=(1, 0)))
    (True, False)
    """
    p = op.primitive
    if p is catalog.gather:  # without indices it may be a view
        return bool(op.params["start_index_map"])
    return p in _MAKING or p in _WRITING or (p in _REDUCTIONS and bool(op.params["axes"]))
