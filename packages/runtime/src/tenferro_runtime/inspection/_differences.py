"""The differences of two profiles: their aligned steps, and the cost of each difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath
from typing import Final

from tenferro_runtime.reports import BodyTime, Difference, Side, StepCost, StepTime, readable
from tenferro_tensor_core import DimLike

CALLBACKS: Final = frozenset({"pure_callback", "debug_callback"})

CONTRACTIONS: Final = frozenset({"dot_general", "contract", "contract_slices"})

MOVES: Final = frozenset(
    {
        "transpose", "reshape", "broadcast_in_dim", "concatenate", "slice", "pad", "gather", "reverse", "convert",
        "update_slice", "dynamic_slice", "dynamic_update_slice",
    }
)  # fmt: skip
"""Primitives that only move elements; views among them move nothing."""

MORE: Final = 1.2
"""Smallest factor between counts of operations that is reported."""


@dataclass(frozen=True, slots=True)
class StepWork:
    """A primitive of a program: a step, or a part of a fused one.

    Attributes:
        name: name of the primitive.
        depth: number of loops, branches and calls around it.
        cost: the step that it belongs to.
        ms: time of the step in all its runs, shared evenly by its parts.
        times: how often the step runs.
        parts: number of primitives in the step, 1 unless it is a fused one.
    """

    name: str
    depth: int
    cost: StepCost
    ms: float
    times: int
    parts: int

    @property
    def fused(self) -> bool:
        """Whether it is part of a fused step."""
        return self.parts > 1

    @property
    def flops(self) -> float:
        """Operations of all runs; those of a fused step are shared evenly."""
        return self.times * _number(self.cost.flops) / self.parts

    @property
    def bytes(self) -> float:
        """Bytes moved in all runs."""
        return self.times * _number(self.cost.bytes) / self.parts

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Names of the dtypes of its results."""
        return tuple([s.dtype.name for s in self.cost.outputs])


def paired(old: Sequence[StepTime], new: Sequence[StepTime]) -> tuple[tuple[StepTime | None, StepTime | None], ...]:
    """The aligned steps of two programs."""
    keys = [[s.cost.parts or s.cost.primitive for s in steps] for steps in (old, new)]
    return tuple([(None if a is None else old[a], None if b is None else new[b]) for a, b in _in_line(*keys)])


def differences(old: Side, new: Side) -> tuple[Difference, ...]:
    """The costs of `new` that `old` does not have, or has less of, most expensive first."""
    theirs, ours = list(_work(old.profile.steps, 0, 1)), list(_work(new.profile.steps, 0, 1))
    pairs = _in_line([(w.depth, w.name) for w in theirs], [(w.depth, w.name) for w in ours])
    both = [(theirs[a], ours[b]) for a, b in pairs if a is not None and b is not None]
    added = [ours[b] for a, b in pairs if a is None and b is not None]
    found = [
        *_retraces(old, new),
        *_form(old, new),
        *_transfers(old, new),
        *_wider(both),
        *_contractions(theirs, ours),
        *_fusions(old, new, both),
        *_added(added, both),
    ]
    return tuple(sorted(found, key=lambda d: -d.ms))


def _work(steps: Sequence[StepTime], depth: int, times: int) -> Iterator[StepWork]:
    for s in steps:
        names = s.cost.parts or (s.cost.primitive,)
        for name in names:
            yield StepWork(name, depth, s.cost, times * s.ms / len(names), times, len(names))
        for body in s.bodies:
            yield from _inside(body, depth + 1, times)


def _inside(body: BodyTime, depth: int, times: int) -> Iterator[StepWork]:
    yield from _work(body.steps, depth, times * body.times)


def _in_line(old: Sequence[object], new: Sequence[object]) -> list[tuple[int | None, int | None]]:
    """Align equal items in order: pairs of positions, ``None`` for an item that only one side has."""
    found: list[tuple[int | None, int | None]] = []
    for same, a, a_end, b, b_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if same == "equal":
            found += zip(range(a, a_end), range(b, b_end), strict=True)
        else:
            found += [(i, None) for i in range(a, a_end)]
            found += [(None, i) for i in range(b, b_end)]
    return found


def _retraces(old: Side, new: Side) -> Iterator[Difference]:
    if new.traces > old.traces:
        often = "each call" if new.traces == 1 else f"{new.traces:g} times in each call"
        what = f"is traced anew in {often}: {new.reason}"
        text = what if new.compiled else f"compiles a function anew in {often}; keep the compiled function"
        yield Difference("retrace", text, new.ms - _replayed(new))


def _replayed(side: Side) -> float:
    return min(side.ms, side.profile.ms)


def _form(old: Side, new: Side) -> Iterator[Difference]:
    if old.native and not new.native and (new.compiled or not new.traces):
        why = f"it {new.form}" if new.compiled and new.form else "its only step is a kernel"
        why = why if new.compiled else "it is not compiled as a whole"
        yield Difference("native", f"does not run as one native function: {why}", new.ms - old.ms)


def _transfers(old: Side, new: Side) -> Iterator[Difference]:
    if new.transfers > old.transfers:
        steps = [s for s in new.profile.steps if s.cost.primitive == "transfer"]
        at = f", the first at {_place(steps[0].cost)}" if steps else ""
        moved = f"makes {new.transfers} transfers between memories instead of {old.transfers}"
        ms = sum([s.ms for s in steps]) or new.ms - _replayed(new)
        yield Difference("transfer", f"{moved}, of {readable(new.moved_bytes, 'B')}{at}", ms)


def _wider(both: Sequence[tuple[StepWork, StepWork]]) -> Iterator[Difference]:
    """Steps whose results have a wider dtype."""
    changed = [(a, b) for a, b in both if a.dtypes != b.dtypes and b.bytes > a.bytes]
    if changed:
        a, b = changed[0]
        steps = f"{len(changed)} steps, which move" if len(changed) > 1 else "a step, which moves"
        more = sum([y.bytes for _, y in changed]) / max(1.0, sum([x.bytes for x, _ in changed]))
        text = (
            f"computes with {', '.join(b.dtypes)} instead of {', '.join(a.dtypes)} from {b.name} at {_place(b.cost)} "
            f"on, in {steps} {more:.3g} times as many bytes"
        )
        yield Difference("dtype", text, sum([y.ms - x.ms for x, y in changed]))


def _contractions(theirs: Sequence[StepWork], ours: Sequence[StepWork]) -> Iterator[Difference]:
    """Contractions and other steps that compute more."""
    for kind, what in (("contraction", "contractions"), ("operations", "steps")):
        a, b = ([w for w in side if (w.name in CONTRACTIONS) == (kind == "contraction")] for side in (theirs, ours))
        before, after = (sum([w.flops for w in side if not w.cost.bodies]) for side in (a, b))
        if after > MORE * before and before:
            most = max(b, key=lambda w: w.flops if not w.cost.bodies else 0.0)
            order = "; another order of the operands is cheaper" if kind == "contraction" else ""
            text = (
                f"computes {after / before:.3g} times as much in its {what}, {readable(after, 'flop')} instead of "
                f"{readable(before, 'flop')}, most of it in {most.name} at {_place(most.cost)}{order}"
            )
            yield Difference(kind, text, sum([w.ms for w in b]) - sum([w.ms for w in a]))


def _fusions(old: Side, new: Side, both: Sequence[tuple[StepWork, StepWork]]) -> Iterator[Difference]:
    if old.nests is not None and new.nests is not None:
        if new.nests > old.nests:
            text = f"passes over memory in {new.nests} loop nests instead of {old.nests}: fewer steps are fused"
            yield Difference("fusion", text, _replayed(new) - _replayed(old))
    if old.native or new.native:
        return
    lost = [(a, b) for a, b in both if a.fused and not b.fused]
    if lost:
        names = ", ".join(dict.fromkeys([b.name for _, b in lost]))
        text = f"runs {names} at {_place(lost[0][1].cost)} as steps of their own, which the other has fused"
        yield Difference("fusion", text, sum([b.ms - a.ms for a, b in lost]))


def _added(added: Sequence[StepWork], both: Sequence[tuple[StepWork, StepWork]]) -> Iterator[Difference]:
    """Steps that only one program has, by kind."""
    copies = [b for a, b in both if b.name in MOVES and not a.bytes and b.bytes and not b.fused]
    kinds: dict[str, list[StepWork]] = {"copy": copies} if copies else {}
    for w in added:
        if w.name in CALLBACKS:
            kinds.setdefault("callback", []).append(w)
        elif w.name != "transfer" and w.bytes:
            kinds.setdefault("copy" if w.name in MOVES else "step", []).append(w)
    verbs = {"callback": "calls back into Python", "copy": "copies", "step": "has more steps"}
    for kind, found in kinds.items():
        each = dict.fromkeys([f"{w.name} at {_place(w.cost)}" for w in found])
        count = sum([w.times for w in found])
        moved = f", {readable(sum([w.bytes for w in found]), 'B')} in all" if kind == "copy" else ""
        times = "" if kind == "step" else f" {count} time{'s' * (count != 1)} more"
        text = f"{verbs[kind]}{times}{moved}: {', '.join(list(each)[:4])}" + ", …" * (len(each) > 4)
        yield Difference(kind, text, sum([w.ms for w in found]))


def _place(cost: StepCost) -> str:
    path, sign, line = cost.where.rpartition(":")
    return f"{PurePath(path).name}{sign}{line}" if sign else cost.where or "an unknown line"


def _number(n: DimLike | None) -> float:
    return float(n) if isinstance(n, (int, float)) else 0.0
