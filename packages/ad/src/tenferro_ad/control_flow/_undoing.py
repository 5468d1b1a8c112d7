"""Undo logs: a carry that a step updates in windows is restored from the previous contents of the windows.

A derivative that reads the whole carry then needs no copy per step: the backward pass starts from the last carry, and
each step stacks only the windows. Restored values are bitwise equal to the originals.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from tenferro_ad._zeros import zeros_beside
from tenferro_ad.rules.structure import slice_of
from tenferro_runtime.extension import Equation, Program, optimise
from tenferro_runtime.ir import Operand, applied
from tenferro_runtime.passes.schedule import VIEWS
from tenferro_runtime.tracing import staged
from tenferro_tensor import Op, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike

UPDATES: Final = frozenset({c.scatter, c.dynamic_update_slice, c.update_slice})
"""Primitives whose result is their first operand with windows replaced."""

_INDEXING: Final = frozenset({c.concatenate, c.iota, c.dim_value})
"""Primitives, besides elementwise ones and views, that may compute indices from others."""


class CarryChain(NamedTuple):
    """The successive versions of a carry within a step.

    Attributes:
        carry: index of the carry.
        versions: its variables, from the input to the output.
        logs: variables that restoring reads and that must be stacked.
        indices: variables that restoring reads and that may be recomputed.
        restores: equations that compute each version from the next, in backward order.
    """

    carry: int
    versions: tuple[int, ...]
    logs: tuple[int, ...]
    indices: tuple[int, ...]
    restores: tuple[Equation, ...]


class Undone(NamedTuple):
    """The reversal of one update of an array.

    Attributes:
        before: the version before the update.
        logs: variables that restoring reads and that must be stacked.
        indices: variables that restoring reads and that may be recomputed.
        restore: the equation that computes `before`.
    """

    before: int
    logs: tuple[int, ...]
    indices: tuple[int, ...]
    restore: Equation


class UndoneProgram(NamedTuple):
    """A branch or a body, and the reversal from one of its outputs to one of its inputs.

    Attributes:
        grown: the program, with the logs as further outputs.
        logs: number of logs.
        reads: positions of the inputs that the reversal reads.
        back: program from the array afterwards, the logs and these inputs to the array before.
    """

    grown: Program
    logs: int
    reads: tuple[int, ...]
    back: Program


def with_logs(first: Program, consts: int, carry: int, which: Collection[int]) -> tuple[Program, list[CarryChain]]:
    """A first part that also computes the logs of its carries, and the chains that restore them.

    The chain of a carry that is not updated in windows has the carry itself as its log.

    Args:
        first: the first part of a step.
        consts: number of inputs before the carry.
        carry: number of carries.
        which: indices of the carries to restore from windows, if possible.
    """
    work = _Logging(first)
    found = []
    for j in range(carry):
        start, end = first.input_ids[consts + j], first.output_ids[j]
        chain = work.chain(j, start, end) if j in which else None
        found.append(chain or CarryChain(j, (start, end), (start,), (), ()))
    return work.close(), found


def versions(body: Program, consts: int, carry: int) -> set[int]:
    """All versions, within a step, of the carries that are updated in windows only."""
    found: set[int] = set()
    for v, end in zip(body.input_ids[consts : consts + carry], body.output_ids):
        passed = _passed(body, end)
        if passed[-1] == v:
            found.update(passed)
    return found


class _Logging:
    """Adds equations to a program that log the values that updates overwrite."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made = {v: eq for eq in program.equations for v in eq.results}
        self.known = {(eq.op, eq.operands): eq.results[0] for eq in program.equations if len(eq.results) == 1}
        self.specs = dict(program.specs)
        self.equations = list(program.equations)

    def chain(self, j: int, start: int, end: int) -> CarryChain | None:
        """The chain of updates of a carry from its input `start` to its output `end`, or ``None``."""
        if _origin(self.program, end) != start:
            return None
        found: list[Undone] = []
        v = end
        while v != start:
            eq = self.made[v]
            undone = self._update(eq, v) if eq.op.primitive in UPDATES else _undone_inside(self, eq, v)
            if undone is None:
                return None
            found.append(undone)
            v = undone.before
        passed = (end, *[undone.before for undone in found])[::-1]
        logs = dict.fromkeys([v for undone in found for v in undone.logs])
        indices = dict.fromkeys([v for undone in found for v in undone.indices])
        return CarryChain(j, passed, tuple(logs), tuple(indices), tuple([undone.restore for undone in found]))

    def _update(self, eq: Equation, v: int) -> Undone | None:
        scatter = eq.op.primitive is c.scatter
        x, window = eq.operands[0], eq.operands[2 if scatter else 1]
        at = eq.operands[1:2] if scatter else eq.operands[2:]  # none of a slice
        if x.__class__ is not int or window.__class__ is not int:
            return None
        read, write, shape = _both_ways(eq, self.specs[x], self.specs[window])
        old = self.emit(read, (x, *at), self.specs[x].with_(shape=shape), eq)
        operands = (v, *at, old) if scatter else (v, old, *at)
        indices = tuple([u for u in at if u.__class__ is int])
        return Undone(x, (old,), indices, Equation(write, operands, (x,), eq.source))

    def emit(self, op: Op, operands: tuple[Operand, ...], spec: Spec, like: Equation) -> int:
        """The result of a new equation, or of an equal existing one."""
        found = self.known.get((op, operands))
        if found is None:
            found = self.variable(spec)
            self.equations.append(Equation(op, operands, (found,), like.source))
            self.known[op, operands] = found
        return found

    def variable(self, spec: Spec) -> int:
        """A new variable."""
        found = max(self.specs) + 1
        self.specs[found] = spec
        return found

    def replace(self, old: Equation, new: Equation) -> None:
        """Replace an equation by one with additional results."""
        self.equations[self.equations.index(old)] = new
        self.made.update(dict.fromkeys(new.results, new))

    def close(self) -> Program:
        """The program with the added equations."""
        if len(self.specs) == len(self.program.specs):
            return self.program
        return self.program.with_(equations=tuple(self.equations), specs=self.specs)


def _both_ways(eq: Equation, x: Spec, window: Spec) -> tuple[Op, Op, tuple[DimLike, ...]]:
    """The op that reads the windows of an update, the op that writes them back, and the shape of the windows."""
    p = eq.op.params
    if eq.op.primitive is c.dynamic_update_slice:
        return c.dynamic_slice.op(sizes=window.shape), eq.op, window.shape
    if eq.op.primitive is c.update_slice:
        taken, shape = slice_of(window.shape, p["start"], p["stride"])
        return taken, c.update_slice.op(**{**p, "mode": "set"}), shape
    extents = iter([window.shape[a] for a in p["update_window_dims"]])
    sizes = tuple([1 if d in p["inserted_dims"] else next(extents) for d in range(x.ndim)])
    read = c.gather.op(
        offset_dims=p["update_window_dims"],
        collapsed_dims=p["inserted_dims"],
        start_index_map=p["scatter_dims"],
        slice_sizes=sizes,
    )
    return read, c.scatter.op(**{**p, "mode": "set"}), window.shape


def ordered(moves: Collection[Equation], restores: Sequence[Equation]) -> list[Equation]:
    """Merge recomputed and restoring equations, so that each version of a carry is read before it is overwritten."""
    stage = {eq.results[0]: i for i, eq in enumerate(restores)}
    for eq in moves:
        stage[eq.results[0]] = max([stage.get(u, -1) for u in eq.variables], default=-1)
    return sorted([*restores, *moves], key=lambda eq: stage[eq.results[0]])


def _origin(program: Program, v: int) -> int | None:
    """The input that a variable is a later version of, changed in windows only; or ``None``."""
    start = _passed(program, v)[-1]
    return start if start in program.input_ids else None


def _passed(program: Program, v: int) -> list[int]:
    """A variable and its earlier versions, latest first."""
    made = {u: eq for eq in program.equations for u in eq.results}
    found = [v]
    while v in made:
        eq = made[v]
        i: int | None = None
        if eq.op.primitive in UPDATES:
            i = 0
        elif eq.op.primitive.name in ("cond", "scan"):
            i = _origin_inside(eq, eq.results.index(v))
        before = None if i is None else eq.operands[i]
        if not isinstance(before, int):
            break
        v = before
        found.append(v)
    return found


def _origin_inside(eq: Equation, k: int) -> int | None:
    """The position of the operand that result `k` of branches or of a loop is a later version of; or ``None``."""
    params = eq.op.params
    if eq.op.primitive.name == "scan":
        i, body = params["consts"] + k, params["body"]
        same = k < params["carry"] and _origin(body, body.output_ids[k]) == body.input_ids[i]
        return i if same else None
    found = set()
    for branch in params["branches"]:
        start = _origin(branch, branch.output_ids[k])
        found.add(None if start is None else branch.input_ids.index(start))
    position = found.pop() if len(found) == 1 else None
    return None if position is None else 1 + position


def _undone_inside(work: _Logging, eq: Equation, v: int) -> Undone | None:
    """The reversal of branches or a loop that update the array `v`; or ``None``."""
    k = eq.results.index(v)
    i = _origin_inside(eq, k)
    if i is None or eq.operands[i].__class__ is not int:
        return None
    return _branches(work, eq, k, i) if eq.op.primitive.name == "cond" else _loop(work, eq, k, i)


def _branches(work: _Logging, eq: Equation, k: int, i: int) -> Undone | None:
    found = [_undone_program(b, b.input_ids[i - 1], b.output_ids[k]) for b in eq.op.params["branches"]]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    specs: list[Spec] = []
    slots = [_shared(part, specs) for part in parts]
    reads = sorted({r for part in parts for r in part.reads})
    x = parts[0].grown.inputs[i - 1]
    forward = tuple([_filled(part, mine, specs) for part, mine in zip(parts, slots, strict=True)])
    back = []
    for part, mine in zip(parts, slots, strict=True):
        taken = [0, *[1 + m for m in mine], *[1 + len(specs) + reads.index(r) for r in part.reads]]
        given = [x, *specs, *[part.grown.inputs[r] for r in reads]]
        back.append(optimise(staged(partial(_applied_to, part.back, taken), given).program))
    logs = tuple([work.variable(s) for s in specs])
    work.replace(eq, Equation(eq.op.primitive.op(branches=forward), eq.operands, (*eq.results, *logs), eq.source))
    operands = (eq.operands[0], eq.results[k], *logs, *[eq.operands[1 + r] for r in reads])
    return _made(eq, i, logs, eq.op.primitive.op(branches=tuple(back)), operands)


def _applied_to(program: Program, taken: Sequence[int], *xs: Any) -> Sequence[Any]:
    return applied(program, [xs[i] for i in taken])


def _shared(part: UndoneProgram, specs: list[Spec]) -> tuple[int, ...]:
    """Slots for the logs of a branch; branches share slots, and new ones are added to `specs`."""
    free, mine = list(range(len(specs))), []
    for spec in part.grown.outputs[len(part.grown.output_ids) - part.logs :]:
        slot = next((s for s in free if specs[s] is spec), None)
        if slot is None:
            slot = len(specs)
            specs.append(spec)
        else:
            free.remove(slot)
        mine.append(slot)
    return tuple(mine)


def _filled(part: UndoneProgram, mine: tuple[int, ...], specs: list[Spec]) -> Program:
    """The branch with its logs in the shared slots, and zeros in the other slots."""

    def outputs(*xs: Any) -> list[Any]:
        outs = applied(part.grown, xs)
        count = len(outs) - part.logs
        logs = dict(zip(mine, outs[count:], strict=True))
        return [*outs[:count], *[logs[s] if s in logs else zeros_beside(xs[0], spec) for s, spec in enumerate(specs)]]

    return optimise(staged(outputs, part.grown.inputs).program)


def _loop(work: _Logging, eq: Equation, k: int, i: int) -> Undone | None:
    params = eq.op.params
    body, consts, carry = params["body"], params["consts"], params["carry"]
    carries = range(consts, consts + carry)
    part = _undone_program(body, body.input_ids[i], body.output_ids[k], [body.input_ids[j] for j in carries])
    if part is None:
        return None
    rows = dict(zip(body.output_ids[carry:], eq.results[carry:]))  # values that are stacked already
    ends, new = list(body.output_ids), []
    for u in part.grown.output_ids[len(body.output_ids) :]:
        if u not in rows:
            spec = part.grown.specs[u]
            rows[u] = work.variable(spec.with_(shape=(params["length"], *spec.shape)))
            ends.append(u)
            new.append(rows[u])
    logs = tuple([rows[u] for u in part.grown.output_ids[len(body.output_ids) :]])
    op = eq.op.primitive.op(**{**params, "body": optimise(part.grown.with_(output_ids=tuple(ends)))})
    work.replace(eq, Equation(op, eq.operands, (*eq.results, *new), eq.source))
    fixed = [p for p, r in enumerate(part.reads) if r < consts]
    sliced = [p for p, r in enumerate(part.reads) if r >= consts]
    first, after, ids = 1 + part.logs, part.back.input_ids[0], part.back.input_ids
    order = (*[ids[first + p] for p in fixed], after, *ids[1:first], *[ids[first + p] for p in sliced])
    back = eq.op.primitive.op(
        body=part.back.with_(input_ids=order), consts=len(fixed), carry=1, length=params["length"],
        reverse=not params["reverse"],
    )  # fmt: skip
    operands = (
        *[eq.operands[part.reads[p]] for p in fixed],
        eq.results[k],
        *logs,
        *[eq.operands[part.reads[p]] for p in sliced],
    )
    return _made(eq, i, logs, back, operands)


def _made(eq: Equation, i: int, logs: tuple[int, ...], op: Op, operands: tuple[Operand, ...]) -> Undone:
    before = eq.operands[i]
    assert isinstance(before, int)
    indices = [u for u in operands if isinstance(u, int) and u not in logs and u not in eq.results]
    return Undone(before, logs, tuple(indices), Equation(op, operands, (before,), eq.source))


def _undone_program(program: Program, start: int, end: int, moving: Collection[int] = ()) -> UndoneProgram | None:
    """The reversal of a program from its output `end` to its input `start`, or ``None``.

    Args:
        program: a branch or a body.
        start: an input.
        end: an output that is a later version of it.
        moving: inputs that the reversal cannot read.
    """
    work = _Logging(program)
    chain = work.chain(0, start, end)
    if chain is None:
        return None
    grown = work.close()
    made = {v: eq for eq in grown.equations for v in eq.results}
    never = {*moving, *chain.versions}
    logs, again, read = list(chain.logs), dict[int, Equation](), set[int]()
    for v in chain.indices:
        steps = _steps_to(made, v, never, set(logs))
        if steps is None:
            logs += [v] * (v not in logs)
        else:
            again.update(steps)
            read.update(u for u in (v, *[u for eq in steps.values() for u in eq.variables]) if u not in steps)
    inputs = [i for i, v in enumerate(program.input_ids) if v in read]
    moves = [eq for eq in grown.equations if eq.results[0] in again and eq.results[0] not in logs]
    back = grown.with_(
        input_ids=(end, *logs, *[program.input_ids[i] for i in inputs]),
        equations=tuple(ordered(moves, chain.restores)),
        constants={v: value for v, value in grown.constants.items() if v in read},
        output_ids=(start,),
    )
    grown = grown.with_(output_ids=(*program.output_ids, *logs))
    return UndoneProgram(grown, len(logs), tuple(inputs), optimise(back))


def _steps_to(
    made: dict[int, Equation], v: int, never: Collection[int], logs: Collection[int]
) -> dict[int, Equation] | None:
    """The cheap equations that compute a variable from inputs and logs; ``None`` if others are needed."""
    steps: dict[int, Equation] = {}
    waiting = [v]
    while waiting:
        u = waiting.pop()
        if u in never:
            return None
        eq = made.get(u)
        if eq is None or u in steps or u in logs:
            continue
        p = eq.op.primitive
        if len(eq.results) != 1 or not (p.elementwise or p in VIEWS or p in _INDEXING):
            return None
        steps[u] = eq
        waiting += eq.variables
    return steps
