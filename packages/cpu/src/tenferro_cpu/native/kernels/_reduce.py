"""`Reduced`: a reduction as a function of a NumPy array and of the axes to reduce."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.codegen.machine._jit import Engine
from tenferro_cpu.native.codegen.machine._jit import engine as default_engine
from tenferro_cpu.native.kernels._code import combined, reduced, reduced_cost, short
from tenferro_cpu.native.kernels._driver import Axis, DriveArguments, coalesced, drive
from tenferro_cpu.native.kernels._elementwise import Array, checked, empty, remember, strides_over
from tenferro_cpu.native.kernels._forms import Access, access_of
from tenferro_cpu.native.kernels._fused_entry import ENTRY_MIN_ROW, SHORT_ROW_MAX, long_row
from tenferro_cpu.native.kernels._limits import COMBINED_ROWS
from tenferro_cpu.native.kernels._planned import planned
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, ShapeError
from tenferro_tensor_core.forks import cached_property

KINDS: Final = ("sum", "prod", "max", "min")
"""The reductions; of booleans ``"max"`` is any, and ``"min"`` is all."""

PART_ELEMENTS = 1 << 16
"""Elements per part of a long row."""

MANY_ROWS_MIN = 64
"""Minimum rows for reducing short rows side by side (no vector has more lanes), and for not cutting long ones."""


@dataclass(frozen=True, slots=True)
class _Space:
    """An iteration space: axes that stay and axes that are reduced; the operands are the array and the result."""

    kept: list[Axis]
    gone: list[Axis]


class Reduced:
    """A reduction of NumPy arrays of any strides.

    Sums and products have the accuracy of pairwise summation; equal inputs of equal layout yield equal bits.

    Args:
        kind: one of `KINDS`; NaN wins, and of equal extremes the first.
        dtype: dtype of the arrays.
        engine: the compiler; by default the engine of the process.

    Raises:
        ArgumentError: there is no such kind.
        DTypeError: an extreme of complex numbers is requested.

    >>> from tenferro_cpu.native import available
    >>> sums = Reduced("sum", np.dtype("float64")) if available() else lambda x, axes: x.sum(axes)
    >>> sums(np.ones((2, 3)), axes=(1,))
    array([3., 3.])
    """

    def __init__(self, kind: str, dtype: np.dtype[Any], engine: Engine | None = None) -> None:
        if kind not in KINDS:
            raise ArgumentError(f"there is no reduction {kind!r}; use one of {', '.join(KINDS)}")
        if dtype.kind == "c" and kind in ("max", "min"):
            raise DTypeError(f"{kind} of {dtype.name} is not defined: complex numbers have no order")
        self.kind, self.dtype = kind, dtype
        self.engine = default_engine() if engine is None else engine
        self._variants: dict[Any, int] = {}
        self._by_layout: dict[Any, Callable[..., Any] | None] = {}

    @cached_property
    def cost(self) -> float:
        """Nanoseconds per element in one thread."""
        return reduced_cost(self.engine, self.kind, self.dtype)

    def row(self, access: Access) -> int:
        """Machine code that reduces a row to one element."""
        return self._code(reduced, access)

    def rows(self, read: Access, write: Access = Access.UNIT) -> int:
        """Machine code that combines rows."""
        return self._code(combined, read, write)

    def _code(self, make: Callable[..., int], *what: Any) -> int:
        found = self._variants.get((make, *what))
        if found is None:
            found = self._variants[make, *what] = make(self.engine, self.kind, self.dtype, *what)
        return found

    def __call__(self, x: Any, *, axes: Sequence[int]) -> Any:
        """The reduced array.

        Args:
            x: the array.
            axes: axes to reduce.

        Raises:
            AxisError: an axis is out of range or repeated.
            ShapeError: an extreme of no elements is requested.
        """
        try:
            known = self._by_layout.get((x.shape, x.strides, axes))
        except (AttributeError, TypeError):  # a list of numbers, or of axes
            known = None
        return known(x) if known is not None else self._planned(x, axes=axes)

    def _planned(self, given: Any, *, axes: Sequence[int]) -> Any:
        (x,) = checked((self.dtype,), (given,))
        shape, own = x.shape, self._normal(axes, x.ndim)
        left = tuple(d for k, d in enumerate(shape) if k not in own)
        y = empty(left, self.dtype)
        if 0 in left:
            return y
        if 0 in shape:
            if self.kind in ("max", "min") and self.dtype.kind != "b":
                raise ShapeError(
                    f"{self.kind} of no elements is not defined, got {shape} over axes {own}; reduce other axes",
                    shape=shape,
                )
            y[...] = self.kind in ("prod", "min")
            return y
        step = self._run(own, x, y)
        if step is not None and x is given and axes.__class__ is tuple:  # a copy has another layout
            found = planned(step, self.dtype, left, partial(self._planned, axes=axes), cost=self.cost)
            remember(self._by_layout, (x.shape, x.strides, axes), found)
        return y

    def _normal(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        found = tuple(sorted(a + rank if a < 0 else a for a in axes))
        if any(not 0 <= a < rank for a in found) or len(set(found)) != len(found):
            raise AxisError(f"axes {tuple(axes)} of an array with {rank} axes: each once, from {-rank} to {rank - 1}")
        return found

    def _run(self, axes: tuple[int, ...], x: Array, y: Array) -> DriveArguments | None:
        """Run; returns the arguments of the driver if it ran once."""
        steps, kept, gone = iter(y.strides), [], []
        for k, (extent, stride) in enumerate(zip(x.shape, strides_over(x, x.shape), strict=True)):
            if k in axes:
                gone.append(Axis(extent, (stride, 0)))
            else:
                kept.append(Axis(extent, (stride, next(steps))))
        space = _Space(coalesced(kept), coalesced(gone))
        pointers = [x.ctypes.data, y.ctypes.data]
        for at, rows in reversed(list(enumerate(space.kept))):
            access = self._short_rows(space.gone, rows)
            if access is not None:
                outer, length = space.kept[:at] + space.kept[at + 1 :], space.gone[0].extent
                step = DriveArguments(self._code(short, length, access), rows, outer)
                drive(step.kernel, pointers, rows, outer, cost=self.cost * length)
                return step
        return self._reduce(space, pointers)

    def _short_rows(self, gone: Sequence[Axis], rows: Axis) -> Access | None:
        """How short rows along an axis lie, if they and the results are contiguous, or one element serves all."""
        item = self.dtype.itemsize
        if len(gone) != 1 or gone[0].extent > SHORT_ROW_MAX or rows.extent < MANY_ROWS_MIN or rows.strides[1] != item:
            return None
        lies = gone[0].strides[0], rows.strides[0]
        return {(item, gone[0].extent * item): Access.UNIT, (0, 0): Access.FIXED}.get(lies)

    def _reduce(self, space: _Space, pointers: list[int]) -> DriveArguments | None:
        """Choose the axis that one kernel reduces; partial results along other reduced axes are reduced in turn."""
        gone = list(space.gone) or [Axis(1, (0, 0))]
        at = min(range(len(gone)), key=lambda k: (self._gathered(gone[k]), gone[k].extent < ENTRY_MIN_ROW, -k))
        axis = gone.pop(at)
        cheap = not self._gathered(axis) or not space.kept
        if (cheap and axis.extent >= ENTRY_MIN_ROW) or not space.kept:
            unit = self._part(axis, space.kept)
            if gone or unit < axis.extent:
                self._partial(space, axis, gone, pointers, self._trailing, unit)
                return None
            return self._trailing(axis, space.kept, pointers)
        if gone or axis.extent > COMBINED_ROWS:
            self._partial(space, axis, gone, pointers, self._leading, COMBINED_ROWS)
            return None
        return self._leading(axis, space.kept, pointers)

    def _access(self, axis: Axis) -> Access:
        return access_of(axis.strides[0], self.dtype.itemsize)

    def _gathered(self, axis: Axis) -> bool:
        """Whether elements along the axis are not contiguous."""
        return self._access(axis) is Access.STRIDED

    def _trailing(self, axis: Axis, outer: Sequence[Axis], pointers: list[int]) -> DriveArguments:
        step = DriveArguments(self.row(self._access(axis)), axis, outer)
        drive(step.kernel, pointers, axis, outer, cost=self.cost, whole=True)
        return step

    def _leading(self, axis: Axis, kept: Sequence[Axis], pointers: list[int]) -> DriveArguments:
        """Rows run along the kept axis with the fewest gathers, and not along one too short for a vector."""
        item = self.dtype.itemsize
        kept = kept or [Axis(1, (item, item))]

        def merit(k: int) -> tuple[int, int]:
            apart = sum([access_of(s, item) is Access.STRIDED for s in kept[k].strides])
            return apart + 4 * (kept[k].extent < 4), -k

        at = min(range(len(kept)), key=merit)
        inner, outer = kept[at], [a for k, a in enumerate(kept) if k != at]
        write = Access.UNIT if inner.strides[1] == item else Access.STRIDED
        step = DriveArguments(self.rows(self._access(inner), write), inner, outer, axis)
        drive(step.kernel, pointers, inner, outer, axis, cost=self.cost)
        return step

    def _part(self, axis: Axis, kept: list[Axis]) -> int:
        """Elements of a row reduced at once: few long rows are cut, so that several threads find work.

        It depends only on the shape and the kernel, and so does every bit of the result.
        """
        few = prod([a.extent for a in kept]) < MANY_ROWS_MIN
        return PART_ELEMENTS if few and axis.extent > long_row(self.cost) else axis.extent

    def _partial(
        self,
        space: _Space,
        axis: Axis,
        gone: list[Axis],
        pointers: list[int],
        run: Callable[[Axis, list[Axis], list[int]], Any],
        unit: int,
    ) -> None:
        """Reduce `unit` elements of an axis at once into a temporary with more axes, and reduce those afterwards."""
        tops, chunks, pieces = [a.extent for a in space.kept], -(-axis.extent // unit), [a.extent for a in gone]
        between = empty((chunks, *pieces, *tops), self.dtype)
        into, steps = [pointers[0], between.ctypes.data], between.strides
        kept = [Axis(a.extent, (a.strides[0], s)) for a, s in zip(gone + space.kept, steps[1:], strict=True)]
        whole, left = divmod(axis.extent, unit)
        for size, many, start in ((unit, whole, 0), (left, 1, whole)):
            if size and many:
                hops = axis.strides[0] * unit, steps[0]
                moved = [p + s * start for p, s in zip(into, hops, strict=True)]
                run(Axis(size, (axis.strides[0], 0)), coalesced([Axis(many, hops), *kept]), moved)
        rows = [Axis(prod((chunks, *pieces)), (steps[-len(tops) - 1] if tops else self.dtype.itemsize, 0))]
        tail = [Axis(a.extent, (s, a.strides[1])) for a, s in zip(space.kept, steps[1 + len(pieces) :], strict=True)]
        self._reduce(_Space(coalesced(tail), coalesced(rows)), [between.ctypes.data, pointers[1]])
