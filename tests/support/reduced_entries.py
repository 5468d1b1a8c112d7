"""Entries in C of reductions, as eager calls have them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from native_rooms import Reduced
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._fused_entry import Rows, entry

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
    address = reduced.rows(Access.UNIT) if rows.combined else reduced.row(Access.UNIT)
    rest, dtype = address if rows.combined else 0, reduced.dtype
    return entry(address, (dtype,), dtype, rows, fallback, cost=reduced.cost, rest=rest, partible=True)
