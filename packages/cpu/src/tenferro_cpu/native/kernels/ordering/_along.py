"""Native kernels of sorting, searches, positions of extremes and cumulative sums, in front of NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.kernels._limits import UNBOUNDED
from tenferro_tensor import Primitive, Spec
from tenferro_tensor.catalog import reduction, scan, sorting

Kernel = Callable[..., Any]
Maker = Callable[..., Kernel]

_WIDE: Final = ("float64", "float32", "int64", "int32", "uint64", "uint32")
_NARROW: Final = ("int16", "int8", "uint16", "uint8", "bool")
"""Types whose elements have keys (kernels/ordering/keys.h)."""

SHORT_LINE: Final = 24
"""Longest line that is sorted by insertion. NumPy sorts long lines of narrow types by radix."""

POSITIONS: Final = 1 << 32
"""Longest line whose positions fit into a word next to 32-bit keys."""


def entries(table: dict[Primitive, Maker]) -> dict[Primitive, Maker]:
    """Makers that put native kernels in front of those of `table`; empty in a pure wheel."""
    if compiled is None:
        return {}
    return {
        sorting.sort: _sort(table[sorting.sort]),
        sorting.argsort: _argsort(table[sorting.argsort]),
        sorting.searchsorted: _search(table[sorting.searchsorted]),
        reduction.argmax: _located(table[reduction.argmax], smallest=False),
        reduction.argmin: _located(table[reduction.argmin], smallest=True),
        scan.cumsum: _cumulative("cumsum", table[scan.cumsum]),
        scan.cumprod: _cumulative("cumprod", table[scan.cumprod]),
    }


def _along(
    kernel: str, dtype: np.dtype[Any], axis: int, reversed: bool, fallback: Kernel, most: int = UNBOUNDED
) -> Kernel:
    return compiled.Along(kernel=kernel, dtype=dtype, axis=axis, reversed=reversed, longest=most, fallback=fallback)


def _sort(reference: Maker) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int, descending: bool) -> Kernel:
        run, (x,) = reference(ins, outs, axis=axis, descending=descending), ins
        if x.dtype.name not in _WIDE + _NARROW or (descending and axis != x.ndim - 1):
            return run
        return _along("sort", x.dtype, axis, descending, run)

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _argsort(reference: Maker) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int, descending: bool) -> Kernel:
        run, (x,) = reference(ins, outs, axis=axis, descending=descending), ins
        most = POSITIONS if x.dtype.name in _WIDE else SHORT_LINE if x.dtype.name in _NARROW else 0
        return _along("argsort", x.dtype, axis, descending, run, most) if most else run

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _search(reference: Maker) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, side: str) -> Kernel:
        run, (x, _) = reference(ins, outs, side=side), ins
        if x.dtype.name not in _WIDE:
            return run
        return compiled.Search(dtype=x.dtype, after=side == "right", fallback=run)

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _located(reference: Maker, *, smallest: bool) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int) -> Kernel:
        run, (x,) = reference(ins, outs, axis=axis), ins
        return _along("argmax", x.dtype, axis, smallest, run) if x.dtype.name in _WIDE else run

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _cumulative(kernel: str, reference: Maker) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axis: int, reverse: bool) -> Kernel:
        run, (x,) = reference(ins, outs, axis=axis, reverse=reverse), ins
        return _along(kernel, x.dtype, axis, reverse, run) if x.dtype.name in _WIDE else run

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make
