"""Native kernels of eager reductions, where they are faster than NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.codegen.machine._jit import available
from tenferro_cpu.native.kernels._fixed import fixed_cost, fixed_reduction
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._fused_entry import Rows, entry
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_tensor import Primitive, Spec
from tenferro_tensor.catalog import reduction
from tenferro_tensor_core.forks import cached_property, new_lock

Kernel = Callable[..., Any]
Maker = Callable[..., Kernel]

_KINDS: Final = {
    reduction.reduce_sum: ("sum", "iufc"),
    reduction.reduce_prod: ("prod", "iufc"),
    reduction.reduce_max: ("max", "iuf"),
    reduction.reduce_min: ("min", "iuf"),
    reduction.reduce_any: ("max", "b"),
    reduction.reduce_all: ("min", "b"),
}
"""Primitive to reduction and kinds of dtype. NumPy's argmax and argmin are faster at every size."""

PLAN_MIN_ELEMENTS: Final = 1 << 15
"""Minimum elements for which planning in the interpreter pays."""

CHAIN_MAX_ADDITIONS: Final = 64
"""Maximum chain of rounded additions in NumPy, which adds pairwise only along contiguous axes."""

EXTREME_MAX_ELEMENTS: Final = 1 << 14
"""Maximum elements of a contiguous extreme that is faster through its call overhead alone."""

EXTREME_MAX_ROW: Final = 512
"""Maximum row length for which extremes are faster regardless of the number of rows, due to NumPy's call per row."""

NUMPY_EXTREME_MIN_ROW: Final = 512
"""Minimum row length for which NumPy's own extremes are faster."""

BYTE_NS: Final = 0.045
"""Nanoseconds per byte in the row kernels compiled ahead of time."""

_kernels: dict[tuple[str, np.dtype[Any]], Reduced] = {}
_lock = new_lock()


def entries(table: dict[Primitive, Maker]) -> dict[Primitive, Maker]:
    """Makers that put native reductions in front of those of `table`; empty in a pure wheel.

    Without a compiler for machine code, operands that no entry takes go to NumPy.
    """
    if compiled is None:
        return {}
    make = _maker if available() else _maker_of_rows
    return {p: make(*_KINDS[p], table[p]) for p in _KINDS if p in table}


def _maker(kind: str, kinds: str, reference: Maker) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axes: tuple[int, ...]) -> Kernel:
        run = reference(ins, outs, axes=axes)
        (x,) = ins
        if not axes or x.dtype.kind not in kinds or not available():
            return run
        planned = _Planned(kind, x.dtype, tuple(sorted(axes)), x.ndim, run)
        rows = _rows(planned.axes, x.ndim)
        if rows is None:
            return planned
        fixed = fixed_reduction(kind, x.dtype)
        if fixed is not None:
            return _entry(kind, x.dtype, fixed[rows.combined], rows, planned, fixed_cost(2 * x.dtype.itemsize))
        kernel = planned.kernel
        address = kernel.rows(Access.UNIT) if rows.combined else kernel.row(Access.UNIT)
        return _entry(kind, x.dtype, address, rows, planned, kernel.cost)

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _maker_of_rows(kind: str, kinds: str, reference: Maker) -> Maker:
    """Entries with the row kernels compiled ahead of time, for operands in simple layouts."""

    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, axes: tuple[int, ...]) -> Kernel:
        run = reference(ins, outs, axes=axes)
        (x,) = ins
        rows = _rows(tuple(sorted(axes)), x.ndim)
        found = fixed_reduction(kind, x.dtype, fastest=False)
        if rows is None or found is None or x.dtype.kind not in kinds:
            return run
        return _entry(kind, x.dtype, found[rows.combined], rows, run, BYTE_NS * x.dtype.itemsize)

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _rows(axes: tuple[int, ...], rank: int) -> Rows | None:
    """The rows of an array that are reduced, or combined; None for inner axes, or none."""
    every = tuple(range(rank))
    if axes == every and axes:
        return Rows(reduced=True)
    if axes and axes == every[-len(axes) :]:
        return Rows(trailing=len(axes), reduced=True)
    if axes and axes == every[: len(axes)]:
        return Rows(trailing=rank - len(axes), combined=True)
    return None


def _entry(kind: str, dtype: np.dtype[Any], address: int, rows: Rows, fallback: Kernel, cost: float) -> Kernel:
    sums = kind in ("sum", "prod")
    scan, rest = _scanned(sums, dtype), address if rows.combined else 0
    made = partial(entry, address, (dtype,), dtype, rows, cost=cost, scan=scan, rest=rest, partible=True)
    if sums:
        return made(fallback)
    short = made(fallback, most=EXTREME_MAX_ELEMENTS)
    return made(short, widest=EXTREME_MAX_ROW) if rows.combined else short


def _scanned(sums: bool, dtype: np.dtype[Any]) -> bool:
    """Whether NumPy warns about a result that is not finite."""
    return sums and dtype.kind in "fc"


def _reduced(kind: str, dtype: np.dtype[Any]) -> Reduced:
    with _lock:
        key = kind, dtype
        if key not in _kernels:
            _kernels[key] = Reduced(kind, dtype)
        return _kernels[key]


class _Planned:
    """Reductions that entries do not take: large arrays are planned, all others go to NumPy.

    NumPy also computes results that are not finite, which it warns about. It adds pairwise only along contiguous axes,
    so long sums of small arrays are first made contiguous.
    """

    def __init__(self, kind: str, dtype: np.dtype[Any], axes: tuple[int, ...], rank: int, run: Kernel) -> None:
        self.kind, self.dtype, self.axes, self.run = kind, dtype, axes, run
        self.sums = kind in ("sum", "prod")
        self.trailing = axes == tuple(range(rank - len(axes), rank))
        self.leading = not self.trailing and axes == tuple(range(len(axes)))
        self.rounds = kind == "sum" and dtype.kind in "fc"
        self.kept = tuple([a for a in range(rank) if a not in axes])

    @cached_property
    def kernel(self) -> Reduced:
        """The kernel for large arrays."""
        return _reduced(self.kind, self.dtype)

    def __call__(self, x: Any, *rest: Any) -> Any:
        if rest or x.__class__ is not np.ndarray or x.dtype != self.dtype:
            return self.run(x, *rest)
        length = prod([x.shape[a] for a in self.axes])
        if x.size < PLAN_MIN_ELEMENTS:
            return self._pairwise(x, length) if self.rounds and length > CHAIN_MAX_ADDITIONS else self.run(x)
        if not self.sums and (self.leading or (self.trailing and length >= NUMPY_EXTREME_MIN_ROW)):
            return self.run(x)
        found = self.kernel(x, axes=self.axes)
        if _scanned(self.sums, x.dtype) and not np.isfinite(found).all():
            return self.run(x)
        return found

    def _pairwise(self, x: Any, length: int) -> Any:
        rows = np.ascontiguousarray(x.transpose(self.kept + self.axes))
        return rows.reshape(*[x.shape[a] for a in self.kept], length).sum(-1)
