"""Undo logs: a carry that a step updates in windows is restored from the previous contents of the windows.

A derivative that reads the whole carry then needs no copy per step: the backward pass starts from the last carry, and
each step stacks only the windows. Restored values are bitwise equal to the originals.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from tenferro_ad.control_flow._branch_slots import in_slots, shared_slots
from tenferro_ad.control_flow._more_inputs import with_inputs
from tenferro_ad.rules.structure import slice_of
from tenferro_runtime.extension import Equation, Program, optimise
from tenferro_runtime.ir import Operand
from tenferro_runtime.passes.schedule import VIEWS
from tenferro_tensor import Op, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike

UPDATES: Final = frozenset({c.scatter, c.dynamic_update_slice, c.update_slice})
"""Primitives whose result is their first operand with windows replaced."""

_INDEXING: Final = frozenset({c.concatenate, c.iota, c.dim_value})
"""Primitives, besides elementwise ones and views, that may compute indices from others."""


class UndoLog(NamedTuple):
    """The successive versions of a carry within a step, and how to restore them.

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


_Undo = tuple[Sequence[int], Op, tuple[Operand, ...]]
"""The reversal of one update: its logs, and the op and the operands that compute the earlier version."""


def with_logs(first: Program, consts: int, carry: int, which: Collection[int]) -> tuple[Program, list[UndoLog]]:
    """A first part that also computes the values that updates of its carries overwrite, and the undo logs.

    The log of a carry that is not updated in windows is the carry itself.

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
        log = work.undo_log(j, start, end) if j in which else None
        found.append(log or UndoLog(j, (start, end), (start,), (), ()))
    return work.close(), found


def versions(body: Program, consts: int, carry: int) -> set[int]:
    """All versions, within a step, of the carries that are updated in windows only."""
    found: set[int] = set()
    for v, end in zip(body.input_ids[consts : consts + carry], body.output_ids):
        passed = _versions(body, end)
        if passed[0] == v:
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

    def undo_log(self, j: int, start: int, end: int) -> UndoLog | None:
        """The undo log of a carry from its input `start` to its output `end`; ``None`` if something else changes it."""
        passed = _versions(self.program, end)
        if passed[0] != start:
            return None
        logs, indices, restores = dict[int, None](), dict[int, None](), []
        for before, v in zip(passed[-2::-1], passed[:0:-1]):
            eq = self.made[v]
            k = eq.results.index(v)
            i = _origin(eq, k)
            assert i is not None  # as `v` has an earlier version
            name = eq.op.primitive.name
            undo = (_undone_branches if name == "cond" else _undone_loop if name == "scan" else _undone)(self, eq, k, i)
            if undo is None:
                return None
            mine, op, operands = undo
            logs.update(dict.fromkeys(mine))
            rest = [u for u in operands if isinstance(u, int) and u not in mine and u not in eq.results]
            indices.update(dict.fromkeys(rest))
            restores.append(Equation(op, operands, (before,), eq.source))
        return UndoLog(j, tuple(passed), tuple(logs), tuple(indices), tuple(restores))

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

    def replace(self, old: Equation, op: Op, more: Sequence[int]) -> None:
        """Replace the op of an equation by one with more results."""
        new = Equation(op, old.operands, (*old.results, *more), old.source)
        self.equations[self.equations.index(old)] = new
        self.made.update(dict.fromkeys(new.results, new))

    def close(self) -> Program:
        """The program with the added equations."""
        if len(self.specs) == len(self.program.specs):
            return self.program
        return self.program.with_(equations=tuple(self.equations), specs=self.specs)


def _versions(program: Program, v: int) -> list[int]:
    """The versions of an array up to a variable, each but the first made from the one before by changing windows."""
    made = {u: eq for eq in program.equations for u in eq.results}
    found = [v]
    while v in made:
        i = _origin(made[v], made[v].results.index(v))
        before = None if i is None else made[v].operands[i]
        if not isinstance(before, int):
            break
        v = before
        found.append(v)
    return found[::-1]


def _origin(eq: Equation, k: int) -> int | None:
    """The position of the operand that result `k` is a later version of, changed in windows only; or ``None``."""
    params = eq.op.params
    if eq.op.primitive in UPDATES:
        return 0
    if eq.op.primitive.name == "scan":
        i, body = params["consts"] + k, params["body"]
        same = k < params["carry"] and _versions(body, body.output_ids[k])[0] == body.input_ids[i]
        return i if same else None
    if eq.op.primitive.name != "cond":
        return None
    starts = [(b.input_ids, _versions(b, b.output_ids[k])[0]) for b in params["branches"]]
    found = {ids.index(start) if start in ids else None for ids, start in starts}
    position = found.pop() if len(found) == 1 else None
    return None if position is None else 1 + position


def _undone(work: _Logging, eq: Equation, k: int, i: int) -> _Undo | None:
    """The reversal of an update of windows."""
    scatter = eq.op.primitive is c.scatter
    x, window = eq.operands[0], eq.operands[2 if scatter else 1]
    at = eq.operands[1:2] if scatter else eq.operands[2:]  # none of a slice
    if x.__class__ is not int or window.__class__ is not int:
        return None
    read, write, shape = _both_ways(eq, work.specs[x], work.specs[window])
    old = work.emit(read, (x, *at), work.specs[x].with_(shape=shape), eq)
    after = eq.results[0]
    return (old,), write, (after, *at, old) if scatter else (after, old, *at)


def _both_ways(eq: Equation, x: Spec, window: Spec) -> tuple[Op, Op, tuple[DimLike, ...]]:
    """The op that reads the windows of an update, the op that writes them back, and the shape of the windows."""
    p = eq.op.params
    if eq.op.primitive is c.dynamic_update_slice:
        return c.dynamic_slice.op(sizes=window.shape), eq.op, window.shape
    if eq.op.primitive is c.update_slice:
        taken, shape = slice_of(window.shape, p["start"], p["stride"])
        return taken, c.update_slice.op(**{**p, "mode": "set"}), shape
    dims, inserted = p["update_window_dims"], p["inserted_dims"]
    extents = iter([window.shape[a] for a in dims])
    sizes = tuple([1 if d in inserted else next(extents) for d in range(x.ndim)])
    read = c.gather.op(offset_dims=dims, collapsed_dims=inserted, start_index_map=p["scatter_dims"], slice_sizes=sizes)
    return read, c.scatter.op(**{**p, "mode": "set"}), window.shape


def ordered(moves: Collection[Equation], restores: Sequence[Equation]) -> list[Equation]:
    """Merge recomputed and restoring equations, so that each version of a carry is read before it is overwritten."""
    stage = {eq.results[0]: i for i, eq in enumerate(restores)}
    for eq in moves:
        stage[eq.results[0]] = max([stage.get(u, -1) for u in eq.variables], default=-1)
    return sorted([*restores, *moves], key=lambda eq: stage[eq.results[0]])


class _UndoneProgram(NamedTuple):
    """A branch or a body, and the reversal from one of its outputs to one of its inputs.

    Attributes:
        grown: the program, with the logs as further outputs.
        logs: the logs.
        reads: positions of the inputs that the reversal reads.
        back: program from the array afterwards, the logs and these inputs to the array before.
    """

    grown: Program
    logs: tuple[int, ...]
    reads: tuple[int, ...]
    back: Program


def _undone_branches(work: _Logging, eq: Equation, k: int, i: int) -> _Undo | None:
    """The reversal of branches that update an array."""
    branches = eq.op.params["branches"]
    parts = [part for b in branches if (part := _undone_program(b, b.input_ids[i - 1], b.output_ids[k])) is not None]
    if len(parts) < len(branches):
        return None
    count, inputs = len(eq.results), parts[0].grown.inputs
    specs, slots = shared_slots([part.grown.outputs[count:] for part in parts])
    reads = sorted({r for part in parts for r in part.reads})
    forward = [in_slots(part.grown, count, mine, specs) for part, mine in zip(parts, slots, strict=True)]
    back = []
    for part, mine in zip(parts, slots, strict=True):
        places = [0, *[1 + m for m in mine], *[1 + len(specs) + reads.index(r) for r in part.reads]]
        own = [inputs[i - 1], *specs, *[inputs[r] for r in reads]]
        back.append(with_inputs(part.back, own, places))
    logs = [work.variable(s) for s in specs]
    work.replace(eq, eq.op.primitive.op(branches=tuple(forward)), logs)
    operands = (eq.operands[0], eq.results[k], *logs, *[eq.operands[1 + r] for r in reads])
    return logs, eq.op.primitive.op(branches=tuple(back)), operands


def _undone_loop(work: _Logging, eq: Equation, k: int, i: int) -> _Undo | None:
    """The reversal of a loop that updates an array."""
    params = eq.op.params
    body, consts, carry = params["body"], params["consts"], params["carry"]
    part = _undone_program(body, body.input_ids[i], body.output_ids[k], body.input_ids[consts : consts + carry])
    if part is None:
        return None
    rows = dict(zip(body.output_ids[carry:], eq.results[carry:]))  # values that are stacked already
    new = [u for u in part.logs if u not in rows]
    for u in new:
        spec = part.grown.specs[u]
        rows[u] = work.variable(spec.with_(shape=(params["length"], *spec.shape)))
    logs = [rows[u] for u in part.logs]
    grown = optimise(part.grown.with_(output_ids=(*body.output_ids, *new)))
    work.replace(eq, eq.op.primitive.op(**{**params, "body": grown}), [rows[u] for u in new])
    after, *ids = part.back.input_ids
    read = dict(zip(part.reads, ids[len(logs) :]))
    fixed, sliced = [r for r in part.reads if r < consts], [r for r in part.reads if r >= consts]
    order = (*[read[r] for r in fixed], after, *ids[: len(logs)], *[read[r] for r in sliced])
    back = eq.op.primitive.op(
        body=part.back.with_(input_ids=order), consts=len(fixed), carry=1, length=params["length"],
        reverse=not params["reverse"],
    )  # fmt: skip
    operands = (*[eq.operands[r] for r in fixed], eq.results[k], *logs, *[eq.operands[r] for r in sliced])
    return logs, back, operands


def _undone_program(program: Program, start: int, end: int, moving: Collection[int] = ()) -> _UndoneProgram | None:
    """The reversal of a program from its output `end` to its input `start`; it cannot read the inputs `moving`."""
    work = _Logging(program)
    log = work.undo_log(0, start, end)
    if log is None:
        return None
    grown = work.close()
    made = {v: eq for eq in grown.equations for v in eq.results}
    never = {*moving, *log.versions}
    logs, again, read = list(log.logs), dict[int, Equation](), set[int]()
    for v in log.indices:
        steps = _steps_to(made, v, never, logs)
        if steps is None:
            logs += [v] * (v not in logs)
        else:
            again.update(steps)
            read.update(u for u in (v, *[u for eq in steps.values() for u in eq.variables]) if u not in steps)
    reads = tuple([i for i, v in enumerate(program.input_ids) if v in read])
    moves = [eq for eq in grown.equations if eq.results[0] in again and eq.results[0] not in logs]
    back = grown.with_(
        input_ids=(end, *logs, *[program.input_ids[i] for i in reads]),
        equations=tuple(ordered(moves, log.restores)),
        constants={v: value for v, value in grown.constants.items() if v in read},
        output_ids=(start,),
    )
    return _UndoneProgram(grown.with_(output_ids=(*program.output_ids, *logs)), tuple(logs), reads, optimise(back))


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
