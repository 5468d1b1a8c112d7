"""Going back through a step: a carry that a step updates in windows is restored from what the windows held before.

Then a derivative that reads the whole carry needs no copy of it for every step: the way back starts from the last
carry, and a step stacks the windows alone. What is restored has the bits of what was there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from tenferro_ad._zeros import zeros_in
from tenferro_ad.rules.structure import slice_of
from tenferro_runtime.extension import Builder, Equation, Program, optimise
from tenferro_runtime.ir import Operand, applied
from tenferro_runtime.passes.schedule import VIEWS
from tenferro_tensor import Op, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike

UPDATES: Final = frozenset({c.scatter, c.dynamic_update_slice, c.update_slice})
"""Primitives whose result is their first operand but for windows."""

_INDEXING: Final = frozenset({c.concatenate, c.iota, c.dim_value})
"""Primitives that make indices of others, beside element-wise ones and views."""


class CarryChain(NamedTuple):
    """The values of a carry within a step, from the first to the last.

    Attributes:
        carry: which carry.
        versions: its variables; the first is the input, the last the output.
        logs: variables that restoring reads and that must be stacked.
        indices: variables that restoring reads and that may be computed again.
        restores: equations that make each version from the next one, the last version but one first.
    """

    carry: int
    versions: tuple[int, ...]
    logs: tuple[int, ...]
    indices: tuple[int, ...]
    restores: tuple[Equation, ...]


class Undone(NamedTuple):
    """How one version of an array is made from the next one.

    Attributes:
        before: the version before.
        logs: variables that restoring reads and that must be stacked.
        indices: variables that restoring reads and that may be computed again.
        restore: the equation that makes it.
    """

    before: int
    logs: tuple[int, ...]
    indices: tuple[int, ...]
    restore: Equation


class UndoneProgram(NamedTuple):
    """A branch or a body, and the way back from one of its outputs to one of its inputs.

    Attributes:
        grown: the program, with the logs as further outputs.
        logs: number of logs.
        reads: positions of the inputs that the way back reads.
        back: program of the array afterwards, the logs and these inputs, to the array before.
    """

    grown: Program
    logs: int
    reads: tuple[int, ...]
    back: Program


def with_logs(first: Program, consts: int, carry: int, which: Collection[int]) -> tuple[Program, list[CarryChain]]:
    """A first part that also computes what restoring its carries reads, and how they are restored.

    Carries that are not updated in windows have chains, too, with the carry itself as what is stacked.

    Args:
        first: the first part of a step.
        consts: number of inputs before the carry.
        carry: number of carries.
        which: the carries that are restored from windows if they can be.
    """
    work = _Logging(first)
    found = []
    for j in range(carry):
        start, end = first.input_ids[consts + j], first.output_ids[j]
        chain = work.chain(j, start, end) if j in which else None
        found.append(chain or CarryChain(j, (start, end), (start,), (), ()))
    return work.close(), found


def versions(body: Program, consts: int, carry: int) -> set[int]:
    """The values in a step of carries that are updated in windows only."""
    found: set[int] = set()
    for v, end in zip(body.input_ids[consts : consts + carry], body.output_ids):
        passed = _passed(body, end)
        if passed[-1] == v:
            found.update(passed)
    return found


class _Logging:
    """A program while equations are added to it that keep what updates write over."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made = {v: eq for eq in program.equations for v in eq.results}
        self.known = {(eq.op, eq.operands): eq.results[0] for eq in program.equations if len(eq.results) == 1}
        self.specs = dict(program.specs)
        self.equations = list(program.equations)

    def chain(self, j: int, start: int, end: int) -> CarryChain | None:
        """How a carry comes about by updates, from its input `start` to its output `end`."""
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
        """A variable made by a new equation, or by the one that makes it already."""
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
        """Replace an equation by one with the same results and more."""
        self.equations[self.equations.index(old)] = new
        self.made.update(dict.fromkeys(new.results, new))

    def close(self) -> Program:
        """The program with what was added."""
        if len(self.specs) == len(self.program.specs):
            return self.program
        return self.program.with_(equations=tuple(self.equations), specs=self.specs)


def _both_ways(eq: Equation, x: Spec, window: Spec) -> tuple[Op, Op, tuple[DimLike, ...]]:
    """Reading the windows that an update writes, writing them back, and the shape of what is read."""
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
    """Equations with those that restore among them.

    Each version of a carry is read before the version before it takes its memory.
    """
    stage = {eq.results[0]: i for i, eq in enumerate(restores)}
    for eq in moves:
        stage[eq.results[0]] = max([stage.get(u, -1) for u in eq.variables], default=-1)
    return sorted([*restores, *moves], key=lambda eq: stage[eq.results[0]])


def _origin(program: Program, v: int) -> int | None:
    """The input of which a variable is a later version: it changed in windows only."""
    start = _passed(program, v)[-1]
    return start if start in program.input_ids else None


def _passed(program: Program, v: int) -> list[int]:
    """A variable and those that it is a later version of, the earliest one last."""
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
    """The position of the operand of which result `k` of branches or of a loop is a later version."""
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
    """How the array before branches or a loop is made from the one afterwards, the variable `v`."""
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
        builder = Builder()
        after, windows = builder.input(x), [builder.input(s) for s in specs]
        read = {r: builder.input(part.grown.inputs[r]) for r in reads}
        outs = applied(part.back, [after, *[windows[m] for m in mine], *[read[r] for r in part.reads]])
        back.append(optimise(builder.close(outs)))
    logs = tuple([work.variable(s) for s in specs])
    work.replace(eq, Equation(eq.op.primitive.op(branches=forward), eq.operands, (*eq.results, *logs), eq.source))
    operands = (eq.operands[0], eq.results[k], *logs, *[eq.operands[1 + r] for r in reads])
    return _made(eq, i, logs, eq.op.primitive.op(branches=tuple(back)), operands)


def _shared(part: UndoneProgram, specs: list[Spec]) -> tuple[int, ...]:
    """Places for the logs of a branch, which branches share; new ones are added."""
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
    """The branch with its logs where all branches have them, and zeros in the other places."""
    builder = Builder()
    outs = applied(part.grown, [builder.input(s) for s in part.grown.inputs])
    count = len(outs) - part.logs
    logs = dict(zip(mine, outs[count:], strict=True))
    rest = [logs[s] if s in logs else zeros_in(builder, spec) for s, spec in enumerate(specs)]
    return optimise(builder.close([*outs[:count], *rest]))


def _loop(work: _Logging, eq: Equation, k: int, i: int) -> Undone | None:
    params = eq.op.params
    body, consts, carry = params["body"], params["consts"], params["carry"]
    carries = range(consts, consts + carry)
    part = _undone_program(body, body.input_ids[i], body.output_ids[k], [body.input_ids[j] for j in carries])
    if part is None:
        return None
    rows = dict(zip(body.output_ids[carry:], eq.results[carry:]))  # what is stacked already
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
    """A program with the way back from its output `end` to its input `start`; ``None`` where there is none.

    Args:
        program: a branch or a body.
        start: an input.
        end: an output that is a later version of it.
        moving: inputs that the way back cannot be given.
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
    """The cheap equations that make a variable from inputs and logs; ``None`` if there is more to it."""
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
