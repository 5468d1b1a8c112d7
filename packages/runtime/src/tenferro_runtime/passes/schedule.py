"""Schedule: reorders equations to reduce the peak of live memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._effects import effects_of
from tenferro_runtime.ir._order import reordered
from tenferro_runtime.ir._program import Equation, Program
from tenferro_tensor import Spec, catalog
from tenferro_tensor_core import Dim, ShapeError, evaluate

__all__ = ["EARLY_MIN_SHRINK", "VIEWS", "extent_in_trace", "peak_estimate", "schedule", "weight"]


def __dir__() -> list[str]:
    return __all__.copy()


VIEWS: Final = frozenset(
    {catalog.broadcast_in_dim, catalog.reshape, catalog.transpose, catalog.slice_, catalog.reverse}
)
"""Primitives whose result is a view of the operand."""

EARLY_MIN_SHRINK: Final = 4
"""A step whose result is at least this many times smaller than its largest operand runs as early as possible."""

ASSUMED_SIZE: Final = 64
"""Value assumed for a symbolic size for which the trace had no example."""


def schedule(program: Program) -> Program:
    """Delay steps that allocate more than they free, and advance steps that shrink their operands.

    Bits do not change. The program keeps the order of its source unless the estimated peak falls.

    Args:
        program: the program.

    Returns:
        The reordered program.
    """
    if len(program.equations) < 3 or definitions(program) or len(effects_of(program)) > 1:
        return program  # data-dependent sizes and effects are dependences beyond operands
    memory = _Memory(program)
    order = _scheduled(program, memory)
    if all(a is b for a, b in zip(order, program.equations)):
        return program
    return program.with_(equations=tuple(order)) if memory.peak(order) < memory.peak(program.equations) else program


def peak_estimate(program: Program) -> int:
    """Estimate of the peak of live memory of the results, with example sizes for symbolic ones.

    Args:
        program: the program.

    Returns:
        Bytes.
    """
    memory = _Memory(program)
    return memory.peak(program.equations)


class _Memory:
    """The sizes of results in bytes, the owners of views' memory, and its readers."""

    def __init__(self, program: Program) -> None:
        self.owner: dict[int, int] = {}
        self.reads: dict[int, list[int]] = {}  # owners of the memory that an equation reads, by its first result
        self.bytes: dict[int, int] = {}
        self.readers: dict[int, int] = {}
        weights: dict[Spec, int] = {}
        for eq in program.equations:
            owner = self.owner.get
            reads = self.reads[eq.results[0]] = [owner(u, u) for u in eq.operands if u.__class__ is int]
            for u in reads:
                self.readers[u] = self.readers.get(u, 0) + 1
            for v in eq.results:
                if eq.op.primitive in VIEWS:
                    self.owner[v] = reads[0]
                else:
                    spec = program.specs[v]
                    known = weights.get(spec)
                    if known is None:
                        known = weights[spec] = weight(spec, program.examples)
                    self.bytes[v] = known
        self.kept = {self.owner.get(v, v) for v in program.output_ids}

    def peak(self, order: Sequence[Equation]) -> int:
        """Largest number of live bytes for an order of the equations."""
        left = dict(self.readers)
        weigh, kept = self.bytes.get, self.kept
        now = most = 0
        for eq in order:
            for v in eq.results:
                now += weigh(v, 0)
            most = max(most, now)
            for u in self.reads[eq.results[0]]:
                left[u] -= 1
                if not left[u] and u not in kept:
                    now -= weigh(u, 0)
            for v in eq.results:
                if v not in left and v not in kept:
                    now -= weigh(v, 0)
        return most

    def frees(self, eq: Equation) -> int:
        """Bytes of operands that have no other reader."""
        alone = [u for u in self.reads[eq.results[0]] if self.readers[u] == 1 and u not in self.kept]
        return sum([self.bytes.get(u, 0) for u in alone])


def weight(spec: Spec, examples: Mapping[str, int]) -> int:
    """Size of an array, with example sizes for symbolic ones.

    Args:
        spec: the spec.
        examples: example sizes by name.

    Returns:
        Bytes.
    """
    n = spec.dtype.itemsize
    for d in spec.shape:
        n *= extent_in_trace(d, examples) if isinstance(d, Dim) else d
    return n


def extent_in_trace(d: Dim, examples: Mapping[str, int]) -> int:
    """A number for a size: from the examples or `ASSUMED_SIZE`, within its bounds.

    Args:
        d: the size.
        examples: example sizes by name.

    Returns:
        The number.
    """
    try:
        return evaluate(d, {name: examples.get(name, ASSUMED_SIZE) for name in d.variables})
    except ShapeError:
        return min(ASSUMED_SIZE, ASSUMED_SIZE if d.upper is None else d.upper)


def _scheduled(program: Program, memory: _Memory) -> list[Equation]:
    """Delay views and steps that allocate more than they free; advance steps that shrink their operands."""
    eager: dict[int, list[Equation]] = {}  # steps that shrink their operands, by operand
    delayed: set[int] = set()
    for eq in program.equations:
        produced = sum([memory.bytes.get(v, 0) for v in eq.results])
        if eq.op.primitive in VIEWS or produced > memory.frees(eq):
            delayed.add(id(eq))
        largest = max([memory.bytes.get(u, 0) for u in memory.reads[eq.results[0]]], default=0)
        if eq.op.primitive not in VIEWS and produced * EARLY_MIN_SHRINK <= largest:
            delayed.discard(id(eq))
            for u in set(eq.variables):
                eager.setdefault(u, []).append(eq)
    return reordered(program, delayed, eager)
