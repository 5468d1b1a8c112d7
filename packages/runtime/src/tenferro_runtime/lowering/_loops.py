"""Lowering of `scan` and `while_loop`.

A carry is a number in a register, or a buffer allocated outside the loop. It is updated in place if the new value is in
the memory of the old one. Otherwise the new value is in another buffer, possibly that of another carry, and the two
buffers are swapped at the end of the iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_runtime.control_flow.primitives import scan, uninitialized, while_loop
from tenferro_runtime.ir._program import Literal, Program
from tenferro_runtime.lowering._lowering import Lowering, Step, rule
from tenferro_runtime.lowering._prepared import prepared
from tenferro_runtime.lowering._values import (
    Formula,
    Lowered,
    Numbers,
    Stored,
    is_small,
    kept,
    numbers,
    write,
)
from tenferro_runtime.lowering._writer import LoopWriter
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Buffer, Carried, Reg, Role, Value, While


@dataclass
class _Carries:
    """The carries of a loop.

    Attributes:
        numbers: initial values of carries in registers, by position.
        memory: initial values of carries in memory, by position.
        same: carries that the body returns unchanged.
    """

    numbers: dict[int, Numbers]
    memory: dict[int, Stored]
    same: dict[int, Lowered]

    @property
    def first(self) -> list[Value]:
        """Initial values of all registers."""
        return [e for x in self.numbers.values() for e in x.elements]

    def inside(self, registers: Sequence[Reg]) -> dict[int, Lowered]:
        """The values in an iteration."""
        rest = iter(registers)
        found: dict[int, Lowered] = {**self.memory, **self.same}
        for k, x in self.numbers.items():
            found[k] = Numbers(x.shape, x.dtype, [next(rest) for _ in x.elements])
        return found

    def in_order(self, registers: Sequence[Reg]) -> list[Lowered]:
        """The values in an iteration, or after the last, in the order of the carries."""
        found = self.inside(registers)
        return [found[k] for k in sorted(found)]


def _carries(step: Step, body: Program, consts: int, count: int) -> _Carries:
    """The carries of a loop, in registers or in their own memory."""
    found, same = _Carries({}, {}, {}), []
    for k in range(consts, consts + count):
        spec = body.inputs[k]
        if body.output_ids[k - consts] == body.input_ids[k]:
            x = step.operand(k, spec.dtype)
            step.replace(k, kept(step.w, x) if x.cost else x)
            same.append(k)
        elif is_small(spec.shape):
            found.numbers[k] = numbers(step.w, step.operand(k, spec.dtype))
        else:
            found.memory[k] = step.target(k)
    for k in same:  # last, because memory that another carry reuses is copied first
        found.same[k] = step.operand(k, body.inputs[k].dtype)
    return found


def _constants(step: Step, body: Program, consts: int) -> None:
    """Compute the constants of the loop before it."""
    for k in range(consts):
        x = step.operand(k, body.inputs[k].dtype)
        if x.cost:
            step.replace(k, kept(step.w, x))


def _count_up(
    w: LoopWriter, body: Program, consts: int, carries: _Carries, loop_index: Reg, inside: Sequence[Reg]
) -> None:
    """Express carries that grow by a fixed number by the loop index."""
    rest = iter(inside)
    made = {eq.results[0]: eq for eq in body.equations if eq.op.primitive is catalog.add}
    for k, x in carries.numbers.items():
        registers = [next(rest) for _ in x.elements]
        eq = made.get(body.output_ids[k - consts])
        if x.dtype != INDEX or x.shape or eq is None or eq.operands[0] != body.input_ids[k]:
            continue
        by = eq.operands[1]
        if isinstance(by, Literal) and isinstance(by.value, int):
            w.stands_for(registers[0], w.index(x.elements[0]) + Affine.of(loop_index) * by.value)


def _hand_on(
    lowering: Lowering, carries: _Carries, new: dict[int, Lowered], first_inside: int
) -> list[tuple[Buffer, Buffer]]:
    """Move new values of carries to where the next iteration reads them; returns the buffers to swap."""
    w, swaps = lowering.w, []
    homes = {k: x.buffer for k, x in carries.memory.items()}
    moved = {k: x for k, x in new.items() if k in homes and not _is_whole(x, homes[k])}
    exchanged: set[int] = set()
    taken: set[int] = {buffer.number for buffer in homes.values()}
    for k, x in moved.items():
        other = next((j for j in moved if j != k and _is_whole(x, homes[j]) and _is_whole(moved[j], homes[k])), None)
        if other is not None:
            if k < other:
                swaps.append((homes[k], homes[other]))
            exchanged.add(k)
    for k, x in moved.items():
        if k in exchanged:
            continue
        spare = _made_inside(x, first_inside, taken)
        if spare is None:
            spare = w.buffer(x.dtype, x.shape)
            write(w, x, Stored.whole_of(spare))
        taken.add(spare.number)
        swaps.append((homes[k], spare))
    return swaps


def _is_whole(x: Lowered, buffer: Buffer) -> bool:
    """Whether a value is all of a buffer."""
    return isinstance(x, Stored) and x.buffer.number == buffer.number and x.whole


def _made_inside(x: Lowered, first_inside: int, taken: set[int]) -> Buffer | None:
    """The buffer of a new value, if this iteration allocated it for that value only."""
    if not isinstance(x, Stored) or not x.whole or x.buffer.role is not Role.TEMPORARY:
        return None
    return x.buffer if x.buffer.number >= first_inside and x.buffer.number not in taken else None


@rule(scan)
def _scan(step: Step) -> Sequence[Lowered]:
    w, lowering = step.w, step.lowering
    consts, count, length = step.params["consts"], step.params["carry"], step.params["length"]
    body, reverse = prepared(step.params["body"]), step.params["reverse"]
    _constants(step, body, consts)
    carries = _carries(step, body, consts, count)
    fixed = [step.operand(k, body.inputs[k].dtype) for k in range(consts)]
    sliced = [step.operand(k) for k in range(consts + count, len(step.eq.operands))]
    rows = [Stored.whole_of(w.buffer(s.dtype, s.shape)) for s in step.outs[count:]]
    with w.loop(length, carries.first) as loop:
        first_inside = w.next_buffer
        _count_up(w, body, consts, carries, loop.index, loop.inside)
        at = Affine.of(loop.index)
        at = -at + (length - 1) if reverse else at
        inputs = [*fixed, *carries.in_order(loop.inside), *[_row(w, x, at) for x in sliced]]
        outs = lowering.run(body, inputs, frozenset(x.buffer.number for x in carries.memory.values()))
        for x, to in zip(outs[count:], rows, strict=True):
            write(w, x, _row_of(to, at))
        new = dict(enumerate(outs[:count], consts))
        loop.following = tuple([e for k in carries.numbers for e in numbers(w, new[k]).elements])
        loop.swaps += _hand_on(lowering, carries, new, first_inside)
    return [*carries.in_order(loop.results), *rows]


@rule(uninitialized)
def _uninitialized(step: Step) -> Lowered:
    return Stored.whole_of(step.w.buffer(step.out.dtype, step.out.shape))


def _row(w: LoopWriter, x: Lowered, at: Affine) -> Lowered:
    """One slice of an operand that the loop iterates over."""
    if isinstance(x, Stored):
        row: Lowered = _row_of(x, at)
    else:
        row = Formula(x.shape[1:], x.dtype, lambda w, index: x.at(w, (at, *index)), [x], 0)
    return numbers(w, row) if is_small(row.shape) else row


def _row_of(x: Stored, at: Affine) -> Stored:
    return Stored(x.buffer, x.shape[1:], x.offset + at * x.strides[0], x.strides[1:])


@rule(while_loop)
def _while(step: Step) -> Sequence[Lowered]:
    w, lowering = step.w, step.lowering
    consts, most = step.params["consts"], step.params["max_steps"]
    test, body = prepared(step.params["cond"]), prepared(step.params["body"])
    _constants(step, body, consts)
    carries = _carries(step, body, consts, len(step.outs))
    fixed = [step.operand(k, body.inputs[k].dtype) for k in range(consts)]
    index, inside = w.reg(INDEX), [w.reg(v.dtype) for v in carries.first]
    w.bounded(index, 0, None if most is None else most - 1)
    _count_up(w, body, consts, carries, index, inside)
    inputs = [*fixed, *carries.in_order(inside)]
    with w.block() as asking:
        condition = lowering.run(test, inputs)[0].at(w, ())
    with w.block() as doing:
        first_inside = w.next_buffer
        new = dict(
            enumerate(lowering.run(body, inputs, frozenset(x.buffer.number for x in carries.memory.values())), consts)
        )
        following = [e for k in carries.numbers for e in numbers(w, new[k]).elements]
        swaps = tuple(_hand_on(lowering, carries, new, first_inside))
    results = [w.reg(v.dtype) for v in carries.first]
    carried = tuple(map(Carried, inside, carries.first, following, results))
    w.statements.append(While(tuple(asking), condition, index, tuple(doing), carried, most, swaps))
    w.written(*[buffer for pair in swaps for buffer in pair])
    return carries.in_order(results)
