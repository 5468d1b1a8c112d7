"""`host_kernel`: kernels on arrays in main memory, for accelerators that compute with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._libraries import library
from tenferro_tensor._place import HOST
from tenferro_tensor._primitive import Op, Primitive
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor.narrow import widened_kernel, widens
from tenferro_tensor.reference import kernels
from tenferro_tensor.reference._table import Table


@cache
def _core() -> Table:
    return kernels(np, lambda: library("scipy.special"))


def has_host_kernel(op: Op) -> bool:
    """Whether `host_kernel` has a kernel of an op; calls no kernel maker, which would need concrete sizes.

    Args:
        op: the op.

    Returns:
        True if there is one.

    >>> from tenferro_tensor import catalog
    >>> has_host_kernel(catalog.exp.op())
    True
    """
    return _maker(op.primitive) is not None


def _maker(primitive: Primitive) -> Callable[..., Any] | None:
    make: Callable[..., Any] | None = _core().get(primitive) or REGISTRY.find("kernel", primitive, "cpu")
    if make is None or primitive is catalog.transfer or make is REGISTRY.find("kernel", primitive, "*"):
        return None
    return make


def host_kernel(op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Callable[..., Any] | None:
    """The kernel of an op on NumPy arrays, whatever the place of its specs: the reference, or a family's CPU kernel.

    It takes NumPy arrays and Python numbers, and returns an array or a tuple of them, which may be views. It computes
    narrow floats in float32, as every kernel does. A backend whose accelerator memory the host can access calls it on
    that memory and wraps the results.

    Args:
        op: the op.
        ins: specs of the operands.
        outs: specs of the results.

    Returns:
        The kernel; None for `transfer`, for ops that a family registered for every backend because they consist of
        other ops (``Backend.kernel`` has them), and if there is no kernel.

    >>> from tenferro_tensor import MemorySpace, Place, catalog
    >>> far = Spec((2,), np.dtype("float64"), Place(MemorySpace("abacus:0")))
    >>> host_kernel(catalog.exp.op(), (far,), (far,))(np.zeros(2))
    array([1., 1.])
    """
    if _maker(op.primitive) is None:
        return None
    if widens(op, (*ins, *outs)):
        return widened_kernel(_made, op, ins, outs)
    return _made(op, ins, outs)


def _made(op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Callable[..., Any]:
    make: Any = _maker(op.primitive)
    here = [tuple([s.with_(place=HOST) if isinstance(s, Spec) else s for s in specs]) for specs in (ins, outs)]
    return make(*here, **op.params)  # type: ignore[no-any-return]
