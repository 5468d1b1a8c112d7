"""Analyses the statements of a loop for vectorisation: which registers differ from lane to lane, and how.

Inner loops that carry numbers run for all lanes together: sums of columns, the best of each column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.codegen.builder import BITS, Block, Module, Vec
from tenferro_cpu.native.codegen.operations._ops import apply, rule_for
from tenferro_cpu.native.codegen.operations._value import Pair, Value, kind_of
from tenferro_cpu.native.codegen.whole._functions import is_function, looks_up
from tenferro_tensor import Op
from tenferro_tensor.catalog import arithmetic, bits
from tenferro_tensor.loop_ir import (
    Affine,
    Buffer,
    For,
    Let,
    Load,
    Order,
    Position,
    Reg,
    Statement,
    Store,
    While,
    everything,
)
from tenferro_tensor.loop_ir import Value as Number
from tenferro_tensor_core import DimLike

DTypes = tuple[np.dtype[Any], ...]

SCATTERED: Final = "scattered"
"""Step of irregular positions."""


@dataclass
class Lanes:
    """A loop as vectors would run it.

    Attributes:
        uniform: statements with equal results in all iterations, except those of inner loops.
        varying: the others, in order.
        inside: registers set by inner loops.
        steps: integer registers, and their increment from one iteration to the next.
        differing: registers whose values differ between iterations, including those of `steps`.
        bits: width of the widest number.
        instructions: approximate number of instructions for one vector.
        mathematics: whether functions are among them.
        apart: number of strided or gathered accesses; stores count twice.
        apart_inside: whether there are regularly strided ones in an inner loop.
        depth: inner loops around the current statement.
        leaving: loops around the statement that lanes leave when they are done.
        pairs: whether every other element is accessed by two contiguous vectors; sums do not.
        combined: for each carry how it accumulates, as `Combiner.kind` names it, and the term.
        combs: loads of short contiguous rows, one element each, and the length of the rows.
    """

    uniform: list[Statement] = field(default_factory=list)
    varying: list[Statement] = field(default_factory=list)
    inside: set[int] = field(default_factory=set)
    steps: dict[int, DimLike] = field(default_factory=dict)
    differing: set[int] = field(default_factory=set)
    bits: int = 8
    instructions: int = 0
    mathematics: bool = False
    apart: int = 0
    apart_inside: bool = False
    depth: int = 0
    leaving: int = 0
    pairs: bool = False
    combined: list[tuple[str, Number]] = field(default_factory=list)
    combs: dict[Load, int] = field(default_factory=dict)

    def step(self, at: Affine) -> DimLike | str:
        """Increment of a position from one iteration to the next; `SCATTERED` if irregular."""
        total: DimLike = 0
        for reg, by in at.terms:
            if reg.number in self.steps:
                total = total + self.steps[reg.number] * by
            elif reg.number in self.differing:
                return SCATTERED
        return total

    def needs(self, dtype: np.dtype[Any]) -> None:
        """Note that numbers of this dtype are among the lanes."""
        self.bits = max(self.bits, BITS[kind_of(dtype)])

    def differs(self, number: Number) -> bool:
        """Whether a number differs between iterations."""
        return isinstance(number, Reg) and number.number in self.differing


_COMBINED: Final = {
    arithmetic.add: ("sum", "iufc"),
    arithmetic.mul: ("prod", "iufc"),
    arithmetic.maximum: ("max", "iufb"),
    arithmetic.minimum: ("min", "iufb"),
    bits.bitwise_or: ("max", "b"),
    bits.bitwise_and: ("min", "b"),
}
"""How ops accumulate, and the kinds of dtype that support it."""


def lanes_of(s: For, fused: bool, given: Sequence[Load] = (), *, combs: bool = False) -> Lanes | None:
    """The lanes of a loop, or None if vectors cannot run its statements.

    Args:
        s: the loop.
        fused: whether the processor has fused multiply-add.
        given: loads done elsewhere.
        combs: whether short rows are read whole, many at once.
    """
    differing = {s.index.number, *[t.result.number for t in given]}
    found = Lanes(steps={s.index.number: 1}, differing=differing, pairs=not s.carries)
    for t in given:
        found.needs(t.result.dtype)
    steps = _accumulating(found, s)
    if steps is None:
        return None
    if combs:
        found.combs = _combs(s)
    stored = {each.buffer.number for each in everything(s.body) if isinstance(each, Store)}
    for each in s.body:
        if each not in steps and not _taken(found, each, fused, stored):
            return None
    return found


def _combs(s: For) -> dict[Load, int]:
    """Loads of short rows all of whose elements are read, and the length of the rows."""
    rows: dict[tuple[int, Affine], dict[int, Load]] = {}
    for each in s.body:
        length = each.at.coefficient(s.index) if isinstance(each, Load) else 0
        if isinstance(each, Load) and length.__class__ is int and length > 1 and each.at.constant.__class__ is int:
            rows.setdefault((each.buffer.number, each.at - each.at.constant), {})[each.at.constant] = each
    return {
        load: len(row)
        for (_, at), row in rows.items()
        if len(at.terms) == 1 and sorted(row) == list(range(len(row))) and at.coefficient(s.index) == len(row)
        for load in row.values()
    }


def _accumulating(lanes: Lanes, s: For) -> list[Statement] | None:
    """The statements that combine a carry with a term, which must be its only use and that of their results."""
    uses = Counter([a.number for each in everything(s.body) for a in _read(each) if isinstance(a, Reg)])
    made = {each.result.number: each for each in s.body if isinstance(each, Let)}
    found: list[Statement] = []
    for c in s.carries:
        step = made.get(c.following.number) if isinstance(c.following, Reg) else None
        if step is None or c.inside not in step.args or len(step.args) != 2:
            return None
        kind, dtypes = _COMBINED.get(step.op.primitive, ("", ""))
        if c.inside.dtype.kind not in dtypes or uses[c.inside.number] != 1 or uses[step.result.number]:
            return None
        lanes.combined.append((kind, step.args[1 - step.args.index(c.inside)]))
        lanes.needs(c.inside.dtype)
        found.append(step)
    return found


def _read(s: Statement) -> list[Number]:
    match s:
        case Let(_, _, args):
            return list(args)
        case Store(_, at, value):
            return [value, *[reg for reg, _ in at.terms]]
        case Load(_, _, at) | Position(_, at):
            return [reg for reg, _ in at.terms]
        case For(carries=carries):
            return [number for c in carries for number in (c.first, c.following)]
        case While(carries=carries, condition=condition):
            return [condition, *[number for c in carries for number in (c.first, c.following)]]
    return []


def _taken(lanes: Lanes, s: Statement, fused: bool, stored: set[int]) -> bool:
    match s:
        case Let():
            return _take_let(lanes, s, fused)
        case Position(result, index):
            step = lanes.step(index)
            if step.__class__ is int and step == 0:
                lanes.uniform.append(s)
                return True
            if isinstance(step, str):
                lanes.needs(result.dtype)
                lanes.instructions += len(index.terms)
            else:
                lanes.steps[result.number] = step
            _vary(lanes, s, result)
            return True
        case Load(result, buffer, at):
            step = lanes.step(at)
            if step.__class__ is int and step == 0:
                lanes.uniform.append(s)
                return buffer.number not in stored
            _vary(lanes, s, result)
            lanes.needs(result.dtype)
            if s in lanes.combs:
                lanes.instructions += 2
                return True
            # Lanes that have left must read nothing, and neighbours are read together.
            return (not lanes.leaving or step == SCATTERED) and _reach(lanes, step, buffer, 1)
        case Store(buffer, at, _):
            if lanes.leaving:
                return False
            step = lanes.step(at)
            lanes.varying.append(s)
            lanes.needs(buffer.dtype)
            return not (step.__class__ is int and step == 0) and _reach(lanes, step, buffer, 2)
        case For():
            return s.order is not Order.ANY and not s.swaps and _take_loop(lanes, s, s.body, fused, stored)
        case While():
            lanes.leaving += 1
            taken = not s.swaps and _take_loop(lanes, s, (*s.test, *s.body), fused, stored)
            lanes.leaving -= 1
            return taken
    return False


def _take_loop(lanes: Lanes, s: For | While, body: Sequence[Statement], fused: bool, stored: set[int]) -> bool:
    """An inner loop, whose iterations all lanes run together."""
    outside = lanes.uniform, lanes.varying
    lanes.uniform, lanes.varying, lanes.depth = [], [], lanes.depth + 1
    lanes.differing |= {c.inside.number for c in s.carries}
    lanes.inside.add(s.index.number)
    for c in s.carries:
        lanes.needs(c.inside.dtype)
    taken = all(_taken(lanes, each, fused, stored) for each in body)
    for each in body:
        if isinstance(each, Let | Position | Load):
            lanes.inside.add(each.result.number)
        elif isinstance(each, For | While):
            lanes.inside |= {c.result.number for c in each.carries}
    (lanes.uniform, lanes.varying), lanes.depth = outside, lanes.depth - 1
    lanes.varying.append(s)
    lanes.differing |= {c.result.number for c in s.carries}
    return taken


def _reach(lanes: Lanes, step: DimLike | str, buffer: Buffer, times: int) -> bool:
    lanes.instructions += 2 if buffer.dtype.kind in "cb" else 1
    if lanes.pairs and every_other(step, buffer):
        lanes.instructions += 3
        lanes.bits = 64
    elif not (step.__class__ is int and step == 1):
        lanes.apart += times
        lanes.apart_inside |= lanes.depth > 0 and not isinstance(step, str)
        lanes.bits = 64
    return True


def every_other(step: DimLike | str, buffer: Buffer) -> bool:
    """Whether lanes are every other element, which two contiguous vectors contain."""
    return step.__class__ is int and step == 2 and buffer.dtype.kind not in "cb"


def _vary(lanes: Lanes, s: Statement, result: Reg) -> None:
    lanes.varying.append(s)
    lanes.differing.add(result.number)


def _take_let(lanes: Lanes, s: Let, fused: bool) -> bool:
    if not any(map(lanes.differs, s.args)):
        lanes.uniform.append(s)
        return True
    dtypes = tuple([a.dtype for a in s.args])
    if rule_for(s.op.primitive, dtypes, fused) is None:
        return False
    _vary(lanes, s, s.result)
    for a in s.args:
        lanes.needs(a.dtype)
        if isinstance(a, Reg) and a.number in lanes.steps:
            lanes.bits = 64
    lanes.needs(s.result.dtype)
    lanes.instructions += instructions(s.op, dtypes, s.result.dtype)
    lanes.mathematics |= is_function(s.op, dtypes)
    return True


@lru_cache(4096)
def instructions(op: Op, dtypes: DTypes, out: np.dtype[Any]) -> int:
    """Number of instructions of an op on one vector."""
    block = Block(Module(), 2)
    args: list[Value] = []
    for k, dtype in enumerate(dtypes):
        x = Vec(block, kind_of(dtype), (f"%x{k}",))
        args.append(Pair(x, x) if dtype.kind == "c" else x)
    apply(block, op, dtypes, out, *args)
    return len(block.lines)


def same_bits(lanes: Lanes, width: int) -> bool:
    """Whether functions on vectors of this width are bit-equal to scalar ones.

    Table lookups need full vectors: narrow numbers next to wide ones do not fill theirs.
    """
    for s in everything(lanes.varying):
        if isinstance(s, Let):
            dtypes = tuple([a.dtype for a in s.args])
            narrow = BITS[kind_of(dtypes[0])] * (width // lanes.bits) != width
            if narrow and is_function(s.op, dtypes) and looks_up(s.op, dtypes, s.result.dtype):
                return False
    return True
