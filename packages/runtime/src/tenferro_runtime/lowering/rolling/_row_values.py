"""`Surroundings`: the program around rolled loops while it is rewritten, and which values are rows of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._program import Equation, Operand, Program
from tenferro_runtime.ir._source import Source
from tenferro_runtime.passes.schedule import weight
from tenferro_tensor import HOST, Op, Spec, Tensor, catalog, tensor
from tenferro_tensor_core import DimLike

JOINED_MAX_BYTES: Final = 1 << 16
"""Largest array, in bytes, that is stacked from values that are not rows of one array."""

STACKED_MAX_BYTES: Final = 1 << 24
"""The same for constants, which are stacked once."""


@dataclass(frozen=True, slots=True)
class RowOf:
    """Element `index` along the first axis of an array, the array being `base` reshaped to ``(count, *shape)``."""

    base: int
    count: int
    shape: tuple[DimLike, ...]
    index: int


@dataclass(frozen=True, slots=True)
class RowSegment:
    """Equally spaced rows of one array, in order; or a single value.

    Attributes:
        value: the first of the values.
        row: the first row, if the values are rows.
        count: number of rows.
        step: distance between rows.
    """

    value: int
    row: RowOf | None
    count: int = 1
    step: int = 1

    def followed_by(self, row: RowOf) -> RowSegment | None:
        """The segment extended by a row, or ``None`` if the row does not continue it."""
        before = self.row
        if before is None or (before.base, before.count, before.shape) != (row.base, row.count, row.shape):
            return None
        distance = row.index - (before.index + (self.count - 1) * self.step)
        if not distance or (self.count > 1 and distance != self.step):
            return None
        return RowSegment(self.value, before, self.count + 1, distance)


class Surroundings:
    """The program being written.

    Attributes:
        exact: whether values must have the same memory layout as in the unrolled program.
        specs: spec of each variable, new ones included.
        rows: which values are rows of arrays.
        gone: variables that no equation defines any more, which are rows only.
        stands_for: replaced variables and their replacements.
    """

    def __init__(self, program: Program, exact: bool) -> None:
        self.program, self.exact = program, exact
        self.specs: dict[int, Spec] = dict(program.specs)
        self.constants: dict[int, Tensor] = dict(program.constants)
        self.equations: list[Equation] = []
        self.rows: dict[int, RowOf] = {}
        self.gone: set[int] = set()
        self.stands_for: dict[int, int] = {}
        self._shaped: dict[tuple[Any, ...], int] = {}
        self._next = max(self.specs, default=-1) + 1

    def fresh(self, spec: Spec) -> int:
        """A new variable."""
        v = self._next
        self._next += 1
        self.specs[v] = spec
        return v

    def constant(self, value: Tensor) -> int:
        """A new constant."""
        v = self.fresh(value.spec)
        self.constants[v] = value
        return v

    def emit(self, op: Op, operands: Sequence[Operand], spec: Spec, source: Source) -> int:
        """A new equation."""
        v = self.fresh(spec)
        self.equations.append(Equation(op, tuple(operands), (v,), source))
        return v

    def value(self, v: int, source: Source = None) -> int:
        """A variable of the program; a row is sliced from its array first."""
        v = self.stands_for.get(v, v)
        if v in self.gone:
            row = self.rows[v]
            whole, spec = self.whole(row, source), self.specs[v]
            one = self._cut(whole, row.index, row.index + 1, 1, source)
            self.equations.append(Equation(catalog.reshape.op(shape=spec.shape), (one,), (v,), source))
            self.gone.remove(v)
        return v

    def keep(self, eq: Equation) -> None:
        """Write an equation of the program unchanged; record results that are rows."""
        if eq.op.primitive is catalog.concatenate and self._joined(eq):
            return
        operands = tuple([self.value(v, eq.source) if v.__class__ is int else v for v in eq.operands])
        self.equations.append(eq if operands == eq.operands else Equation(eq.op, operands, eq.results, eq.source))
        self._note(eq)

    def _note(self, eq: Equation) -> None:
        """Record results that are rows."""
        p = eq.op.primitive
        if p is catalog.reshape:
            row = self.rows.get(eq.operands[0])  # type: ignore[arg-type]
            if row is not None:
                self.rows[eq.results[0]] = replace(row, shape=self.specs[eq.results[0]].shape)
        elif p is catalog.slice_:
            self._note_slice(eq)
        elif p.name == "rows":
            (x,) = eq.variables
            for i, v in enumerate(eq.results):
                self.rows[v] = RowOf(self.stands_for.get(x, x), len(eq.results), self.specs[v].shape, i)

    def _note_slice(self, eq: Equation) -> None:
        (x,), params = eq.variables, eq.op.params
        shape, out = self.specs[x].shape, self.specs[eq.results[0]].shape
        start, limit = params["start"], params["limit"]
        if not shape or any(n != 1 for n in params["stride"]) or out[1:] != shape[1:]:
            return
        if any(n.__class__ is not int for n in (shape[0], start[0], limit[0])):
            return
        extent = limit[0] - start[0]
        if extent and shape[0] > extent and shape[0] % extent == 0 and start[0] % extent == 0:
            self.rows[eq.results[0]] = RowOf(self.stands_for.get(x, x), shape[0] // extent, out, start[0] // extent)

    def whole(self, row: RowOf, source: Source) -> int:
        """The array that a value is a row of, reshaped to have it as a row."""
        base = self.value(row.base, source)
        shape = (row.count, *row.shape)
        if self.specs[base].shape == shape:
            return base
        key = (base, shape)
        found = self._shaped.get(key)
        if found is None:
            spec = self.specs[base].with_(shape=shape)
            found = self._shaped[key] = self.emit(catalog.reshape.op(shape=shape), (base,), spec, source)
        return found

    def _cut(self, x: int, start: int, limit: int, step: int, source: Source) -> int:
        spec = self.specs[x]
        count = -(-(limit - start) // step)
        if count == spec.shape[0] and step == 1:
            return x
        rest = spec.shape[1:]
        op = catalog.slice_.op(start=(start, *[0] * len(rest)), limit=(limit, *rest), stride=(step, *[1] * len(rest)))
        return self.emit(op, (x,), spec.with_(shape=(count, *rest)), source)

    def segments(self, values: Sequence[int]) -> list[RowSegment]:
        """Group values, in order, into segments of equally spaced rows."""
        found: list[RowSegment] = []
        for v in values:
            v = self.stands_for.get(v, v)
            row = self.rows.get(v)
            longer = found[-1].followed_by(row) if found and row is not None else None
            if longer is None:
                found.append(RowSegment(v, row))
            else:
                found[-1] = longer
        return found

    def longest(self, values: Sequence[int]) -> range:
        """The part of the values that `stacked` stacks cheaply: all of them, or the longest segment."""
        segments = self.segments(values)
        if len(segments) == 1 or self._is_cheap(values):
            return range(len(values))
        best = max(segments, key=lambda segment: segment.count)
        start = sum([segment.count for segment in segments[: segments.index(best)]])
        return range(start, start + best.count)

    def _is_cheap(self, values: Sequence[int]) -> bool:
        if all(self.stands_for.get(v, v) in self.constants for v in values):
            return True
        return len(values) * weight(self.specs[values[0]], self.program.examples) <= JOINED_MAX_BYTES

    def stacked(self, values: Sequence[int], source: Source) -> int | None:
        """An array with the values as its rows; ``None`` if stacking costs too much."""
        spec = self.specs[values[0]]
        if all(self.stands_for.get(v, v) in self.constants for v in values):
            return self._constants([self.constants[self.stands_for.get(v, v)] for v in values])
        segments = self.segments(values)
        if len(segments) > 1 and not self._is_cheap(values):
            return None
        parts = [self._part(segment, source) for segment in segments]
        if len(parts) == 1:
            return parts[0]
        out = spec.with_(shape=(len(values), *spec.shape))
        return self.emit(catalog.concatenate.op(axis=0), parts, out, source)

    def _part(self, segment: RowSegment, source: Source) -> int:
        v, row, count, step = segment.value, segment.row, segment.count, segment.step
        if row is None or count == 1:
            spec = self.specs[v]
            shape = (1, *spec.shape)
            return self.emit(catalog.reshape.op(shape=shape), (self.value(v, source),), spec.with_(shape=shape), source)
        last = row.index + (count - 1) * step
        x = self._cut(self.whole(row, source), min(row.index, last), max(row.index, last) + 1, abs(step), source)
        return x if step > 0 else self.emit(catalog.reverse.op(axes=(0,)), (x,), self.specs[x], source)

    def _constants(self, values: Sequence[Tensor]) -> int | None:
        if values[0].spec.place is not HOST or not all(c.data.flags.c_contiguous for c in values):
            return None
        if sum([c.data.nbytes for c in values]) > STACKED_MAX_BYTES:
            return None
        return self.constant(tensor(np.stack([c.data for c in values])))

    def _joined(self, eq: Equation) -> bool:
        """Try to write a concatenation of rows as one of their arrays; return whether that is shorter."""
        if not any(v in self.rows for v in eq.variables):
            return False
        segments = self.segments(eq.variables)
        if 2 * len(segments) > len(eq.variables):
            return False
        axis = eq.op.params["axis"]
        parts = [self._laid_out(segment, axis, eq.source) for segment in segments]
        if len(parts) == 1:
            self.stands_for[eq.results[0]] = parts[0]
        else:
            self.equations.append(Equation(eq.op, tuple(parts), eq.results, eq.source))
        return True

    def _laid_out(self, segment: RowSegment, axis: int, source: Source) -> int:
        """The rows of a segment concatenated along one of their axes."""
        if segment.row is None or segment.count == 1:
            return self.value(segment.value, source)
        x = self._part(segment, source)
        spec = self.specs[x]
        count, *shape = spec.shape
        if axis:
            order = (*range(1, axis + 1), 0, *range(axis + 1, len(spec.shape)))
            spec = spec.with_(shape=tuple([spec.shape[k] for k in order]))
            x = self.emit(catalog.transpose.op(permutation=order), (x,), spec, source)
        spec = spec.with_(shape=(*shape[:axis], count * shape[axis], *shape[axis + 1 :]))
        return self.emit(catalog.reshape.op(shape=spec.shape), (x,), spec, source)
