"""`Reduced`: a fused reducing kernel as a function of NumPy arrays and of the axes to reduce."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from tenferro_cpu.native.kernels._driver import Axis, DriveArguments, coalesced, drive
from tenferro_cpu.native.kernels._elementwise import (
    Array,
    checked,
    empty,
    extents,
    remember,
    strides_over,
)
from tenferro_cpu.native.kernels._forms import LOCATED, Short, access_of
from tenferro_cpu.native.kernels._fused_entry import ENTRY_MIN_ROW, SHORT_ROW_MAX, long_row
from tenferro_cpu.native.kernels._identity import noted_cost
from tenferro_cpu.native.kernels._limits import COMBINED_ROWS
from tenferro_cpu.native.kernels._planned import layout_of, planned
from tenferro_cpu.native.machine._jit import Engine
from tenferro_cpu.native.machine._jit import engine as default_engine
from tenferro_tensor.device_model import Access, KernelIR, Operand, Over
from tenferro_tensor_core import ArgumentError, AxisError, ShapeError
from tenferro_tensor_core.forks import cached_property, importing

if TYPE_CHECKING:
    from tenferro_tensor.device_model import Toolchain

PART_ELEMENTS = 1 << 16
"""Elements per part of a long row."""

MANY_ROWS_MIN = 64
"""Minimum rows for reducing short rows side by side (no vector has more lanes), and for not cutting long ones."""


@dataclass(frozen=True, slots=True)
class _Space:
    """An iteration space: axes that stay and axes that are reduced; operands are the inputs, then the outputs."""

    kept: list[Axis]
    gone: list[Axis]


class Reduced:
    """A fused kernel with reduced outputs, on NumPy arrays of any strides.

    Sums and products have the accuracy of pairwise summation; equal inputs of equal layout yield equal bits.

    Args:
        kernel: what to compute and how to reduce it; accesses and direction are chosen for the arrays.
        engine: the compiler; by default the engine of the process.

    >>> import numpy as np
    >>> from tenferro_cpu.native import available
    >>> from tenferro_tensor.catalog.arithmetic import mul
    >>> from tenferro_tensor.device_model import Apply, Reduction
    >>> f8 = Operand(np.dtype("float64"))
    >>> dot = KernelIR((f8, f8), (Apply(mul.op(), (0, 1)),), (2,), reduction=Reduction("sum"))
    >>> Reduced(dot)(np.ones((2, 3)), np.arange(3.0), axes=(1,)) if available() else np.array([3.0, 3.0])
    array([3., 3.])
    """

    def __init__(self, kernel: KernelIR, engine: Engine | None = None) -> None:
        if kernel.reduction is None:
            raise ArgumentError("the kernel reduces nothing; make it a Fused")
        self.kernel, self.kind = kernel, kernel.reduction.kind
        self.engine = default_engine() if engine is None else engine
        self._variants: dict[Any, int] = {}
        self._rest: Reduced | None = None
        self._by_layout: dict[Any, Callable[..., Any] | None] = {}

    @cached_property
    def cost(self) -> float:
        """Nanoseconds per element in one thread."""
        return noted_cost(self.kernel, self.engine)

    def address(self, over: Over | Short, reads: tuple[Access, ...], writes: tuple[Access, ...]) -> int:
        """Machine code for operands with these accesses; see `render_reduction`, and for short rows `render_short`."""
        key = (over, reads, writes)
        found = self._variants.get(key)
        if found is None:
            found = self.compiled(key)
        return found

    def compiled(self, variant: tuple[Over | Short, tuple[Access, ...], tuple[Access, ...]]) -> int:
        """The machine code of a variant, compiled if necessary."""
        tools, kernel = self._rendered(variant)
        made: int = tools.compiled(kernel, "reduce").code  # type: ignore[assignment]
        self._variants[variant] = made
        return made

    def _rendered(
        self, variant: tuple[Over | Short, tuple[Access, ...], tuple[Access, ...]]
    ) -> tuple[Toolchain, KernelIR]:
        """The toolchain of a variant, and its kernel."""
        with importing():
            from tenferro_cpu.native.kernels._device import llvm
        over, reads, writes = variant
        assert self.kernel.reduction is not None
        inputs = tuple(replace(o, access=a) for o, a in zip(self.kernel.inputs, reads))
        kernel = replace(self.kernel, inputs=inputs, writes=writes)
        if isinstance(over, Short):
            return llvm(self.engine, short=over), kernel
        return llvm(self.engine), replace(kernel, reduction=replace(self.kernel.reduction, over=over))

    def __call__(self, *arrays: Any, axes: Sequence[int]) -> Any:
        """The reduced outputs: one array, or a tuple if the kernel has several.

        Args:
            arrays: the operands, broadcast to one shape.
            axes: axes of that shape to reduce; exactly one for argmax and argmin.

        Raises:
            AxisError: an axis is out of range or repeated.
            ShapeError: the shapes do not broadcast, or an extreme of no elements is requested.
        """
        key = layout_of(arrays), axes.__class__ is tuple and axes
        known = self._by_layout.get(key)
        return known(*arrays) if known is not None else self._planned(*arrays, axes=axes, key=key)

    def _planned(self, *arrays: Any, axes: Sequence[int], key: Any = (None, False)) -> Any:
        xs = checked(self.kernel, arrays)
        shape = extents(xs)
        axes = self._normal(axes, len(shape))
        left = tuple(d for k, d in enumerate(shape) if k not in axes)
        ys = [empty(left, operand.dtype) for operand in self.kernel.written]
        if 0 in left:
            return self._given(ys)
        if 0 in shape:
            of_truth = self.kind in ("max", "min") and all(y.dtype.kind == "b" for y in ys)  # any and all
            if self.kind not in ("sum", "prod") and not of_truth:
                raise ShapeError(
                    f"{self.kind} of no elements is not defined, got {shape} over axes {axes}; reduce other axes",
                    shape=shape,
                )
            for y in ys:
                y[...] = self.kind in ("prod", "min")
            return self._given(ys)
        step = self._run(shape, axes, xs, ys)
        if step is not None and None not in key and False not in key and key not in self._by_layout:
            again = partial(self._planned, axes=axes)
            found = planned(step, self.kernel.inputs, self.kernel.written, left, again, cost=self.cost)
            remember(self._by_layout, key, found)
        return self._given(ys)

    @staticmethod
    def _given(ys: list[Array]) -> Any:
        return ys[0] if len(ys) == 1 else tuple(ys)

    def _normal(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        found = tuple(sorted(a + rank if a < 0 else a for a in axes))
        if any(not 0 <= a < rank for a in found) or len(set(found)) != len(found):
            raise AxisError(f"axes {tuple(axes)} of an array with {rank} axes: each once, from {-rank} to {rank - 1}")
        if self.kind in LOCATED and len(found) != 1:
            raise ArgumentError(f"{self.kind} takes one axis, got {tuple(axes)}")
        return found

    def _run(
        self, shape: tuple[int, ...], axes: tuple[int, ...], xs: list[Array], ys: list[Array]
    ) -> DriveArguments | None:
        """Run; returns the arguments of the driver if it ran once."""
        columns = list(zip(*(strides_over(x, shape) for x in xs)))
        steps = iter(list(zip(*(y.strides for y in ys))))
        none = (0,) * len(ys)
        kept, gone = [], []
        for k, extent in enumerate(shape):
            if k in axes:
                gone.append(Axis(extent, columns[k] + none))
            else:
                kept.append(Axis(extent, columns[k] + next(steps)))
        space = _Space(coalesced(kept), coalesced(gone))
        pointers, both = [x.ctypes.data for x in (*xs, *ys)], [*xs, *ys]
        for at, rows in reversed(list(enumerate(space.kept))):
            short = self._short_rows(space.gone, rows, both)
            if short is not None:
                reads = _accesses(space.gone[0], both[: len(xs)])
                outer = space.kept[:at] + space.kept[at + 1 :]
                kernel = self.address(short, reads, (Access.UNIT,) * len(ys))
                drive(kernel, pointers, rows, outer, cost=self.cost * short.length)
                return DriveArguments(kernel, rows, outer)
        return self._reduce(space, pointers, both)

    def _short_rows(self, gone: Sequence[Axis], rows: Axis, both: list[Array]) -> Short | None:
        """The short rows along an axis, if the operands are contiguous rows or one row for all."""
        if len(gone) != 1 or self.kind in LOCATED:
            return None
        length, count, repeated = gone[0].extent, len(self.kernel.inputs), []
        if length > SHORT_ROW_MAX or rows.extent < MANY_ROWS_MIN:
            return None
        for x, step, hop in zip(both[:count], gone[0].strides, rows.strides):
            if (step, hop) not in ((x.itemsize, length * x.itemsize), (x.itemsize, 0), (0, 0)):
                return None
            repeated.append((step, hop) == (x.itemsize, 0))
        apart = any(hop != y.itemsize for y, hop in zip(both[count:], rows.strides[count:]))
        return None if apart else Short(length, tuple(repeated))

    def _reduce(self, space: _Space, pointers: list[int], both: list[Array]) -> DriveArguments | None:
        """Choose the axis that one kernel reduces; partial results along other reduced axes are reduced in turn."""
        count = len(self.kernel.inputs)
        inputs, gone = both[:count], list(space.gone) or [Axis(1, (0,) * len(both))]
        at = min(range(len(gone)), key=lambda k: (_gathered(gone[k], inputs), gone[k].extent < ENTRY_MIN_ROW, -k))
        axis = gone.pop(at)
        cheap = _gathered(axis, inputs) == 0 or not space.kept
        if self.kind in LOCATED or (cheap and axis.extent >= ENTRY_MIN_ROW) or not space.kept:
            unit = self._part(axis, space.kept)
            if gone or unit < axis.extent:
                self._partial(space, axis, gone, pointers, both, Over.TRAILING, unit)
                return None
            return self._trailing(axis, space.kept, pointers, both)
        if gone or axis.extent > COMBINED_ROWS:
            self._partial(space, axis, gone, pointers, both, Over.LEADING, COMBINED_ROWS)
            return None
        return self._leading(axis, space.kept, pointers, both)

    def _trailing(self, axis: Axis, outer: Sequence[Axis], pointers: list[int], both: list[Array]) -> DriveArguments:
        reads = _accesses(axis, both[: len(self.kernel.inputs)])
        writes = (Access.UNIT,) * len(self.kernel.outputs)
        step = DriveArguments(self.address(Over.TRAILING, reads, writes), axis, outer)
        drive(step.kernel, pointers, axis, outer, cost=self.cost, whole=True)
        return step

    def _leading(self, axis: Axis, kept: Sequence[Axis], pointers: list[int], both: list[Array]) -> DriveArguments:
        """Rows run along the kept axis with the fewest gathers."""
        count = len(self.kernel.inputs)
        at = min(range(len(kept)), key=lambda k: (_merit(kept[k], both), -k))
        inner, outer = kept[at], [a for k, a in enumerate(kept) if k != at]
        accesses = _accesses(inner, both)
        writes = tuple(Access.STRIDED if a is Access.FIXED else a for a in accesses[count:])
        step = DriveArguments(self.address(Over.LEADING, accesses[:count], writes), inner, outer, axis)
        drive(step.kernel, pointers, inner, outer, axis, cost=self.cost)
        return step

    def _part(self, axis: Axis, kept: list[Axis]) -> int:
        """Elements of a row reduced at once: few long rows are cut, so that several threads find work.

        It depends only on the shape and the kernel, and so does every bit of the result.
        """
        few = prod([a.extent for a in kept]) < MANY_ROWS_MIN
        cut = self.kind not in LOCATED and few and axis.extent > long_row(self.cost)
        return PART_ELEMENTS if cut else axis.extent

    def _partial(
        self, space: _Space, axis: Axis, gone: list[Axis], pointers: list[int], both: list[Array], over: Over, unit: int
    ) -> None:
        """Reduce `unit` elements of an axis at once into a temporary with more axes, and reduce those afterwards."""
        count, tops = len(self.kernel.inputs), [a.extent for a in space.kept]
        chunks = -(-axis.extent // unit)
        pieces = [a.extent for a in gone]
        temporaries = [empty((chunks, *pieces, *tops), operand.dtype) for operand in self.kernel.written]
        into = pointers[:count] + [t.ctypes.data for t in temporaries]
        steps = list(zip(*(t.strides for t in temporaries)))
        kept = [Axis(a.extent, a.strides[:count] + s) for a, s in zip(gone + space.kept, steps[1:])]
        arrays = [*both[:count], *temporaries]
        none = (0,) * len(temporaries)
        whole, left = divmod(axis.extent, unit)
        for size, many, start in ((unit, whole, 0), (left, 1, whole)):
            if not size or not many:
                continue
            hops = tuple(s * unit for s in axis.strides[:count]) + steps[0]
            moved = [p + s * start for p, s in zip(into, hops)]
            reduced = Axis(size, axis.strides[:count] + none)
            _Chunk(self, over, reduced, coalesced([Axis(many, hops), *kept])).run(moved, arrays)
        rest = self._combining()
        rows = [Axis(prod((chunks, *pieces)), (steps[-len(tops) - 1] if tops else _items(temporaries)) + none)]
        tail = [Axis(a.extent, s + a.strides[count:]) for a, s in zip(space.kept, steps[1 + len(pieces) :])]
        rest._reduce(
            _Space(coalesced(tail), coalesced(rows)),
            [t.ctypes.data for t in temporaries] + pointers[count:],
            [*temporaries, *both[count:]],
        )

    def _combining(self) -> Reduced:
        """The reduction of this one's partial results."""
        if self._rest is None:
            dtypes = tuple(operand.dtype for operand in self.kernel.written)
            operands = tuple(map(Operand, dtypes))
            assert self.kernel.reduction is not None
            self._rest = Reduced(
                KernelIR(operands, (), tuple(range(len(dtypes))), reduction=self.kernel.reduction),
                self.engine,
            )
        return self._rest


@dataclass(frozen=True, slots=True)
class _Chunk:
    """One pass of a partial reduction."""

    owner: Reduced
    over: Over
    axis: Axis
    kept: list[Axis]

    def run(self, pointers: list[int], both: list[Array]) -> None:
        if self.over is Over.TRAILING:
            self.owner._trailing(self.axis, self.kept, pointers, both)
        else:
            self.owner._leading(self.axis, self.kept or [Axis(1, tuple(x.itemsize for x in both))], pointers, both)


def _items(arrays: list[Array]) -> tuple[int, ...]:
    return tuple(x.itemsize for x in arrays)


def _accesses(axis: Axis, arrays: Sequence[Array]) -> tuple[Access, ...]:
    return tuple(access_of(s, x.itemsize) for s, x in zip(axis.strides, arrays))


def _gathered(axis: Axis, arrays: Sequence[Array]) -> int:
    """Number of operands whose elements along the axis are not contiguous."""
    return sum(a is Access.STRIDED for a in _accesses(axis, arrays))


def _merit(axis: Axis, arrays: Sequence[Array]) -> float:
    """Cost of an axis as the row: gathers, and rows too short for a vector."""
    return _gathered(axis, arrays) + (4.0 if axis.extent < 4 else 0.0)
