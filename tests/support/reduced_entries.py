"""Entries in C of reductions, as eager calls have them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tenferro_cpu.native.kernels._fused_entry import Rows, entry
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_tensor.device_model import Access, Over

Kernel = Callable[..., Any]


def by_rows(reduced: Reduced) -> Kernel:
    """The reduction over the last axis."""
    return _entry(reduced, Rows(trailing=1, reduced=True), partial(reduced, axes=(-1,)))


def of_all(reduced: Reduced) -> Kernel:
    """The reduction over all axes."""
    return _entry(reduced, Rows(reduced=True), lambda *xs: reduced(*xs, axes=range(max(x.ndim for x in xs))))


def by_columns(reduced: Reduced, fallback: Kernel) -> Kernel:
    """The reduction of a matrix over its first axis."""
    return _entry(reduced, Rows(trailing=1, combined=True), fallback)


def _entry(reduced: Reduced, rows: Rows, fallback: Kernel) -> Kernel:
    units = (Access.UNIT,) * len(reduced.kernel.inputs), (Access.UNIT,) * len(reduced.kernel.outputs)
    address = reduced.address(Over.LEADING if rows.combined else Over.TRAILING, *units)
    rest = address if rows.combined else 0
    kernel = reduced.kernel
    inputs, written = (tuple([o.dtype for o in operands]) for operands in (kernel.inputs, kernel.written))
    partible = not reduced.kind.startswith("arg")
    return entry(address, inputs, written, rows, fallback, cost=reduced.cost, rest=rest, partible=partible)
