"""The differences of two profiles: their aligned steps, and the cost of each difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from tenferro_runtime.reports import Difference, Side, StepCost, StepTime, readable
from tenferro_runtime.reports._lines import brief
from tenferro_runtime.reports._walk import walk

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


class StepWork(NamedTuple):
    """A primitive of a program: a step, or a part of a fused one, which shares its cost evenly with the other parts.

    Attributes:
        name: name of the primitive.
        depth: number of loops, branches and calls around it.
        cost: the step that it belongs to.
        times: how often the step runs.
        parts: number of primitives in the step, 1 unless it is a fused one.
        ms: time in all runs of the step.
        flops: operations in all runs.
        bytes: bytes moved in all runs.
    """

    name: str
    depth: int
    cost: StepCost
    times: int
    parts: int
    ms: float
    flops: float
    bytes: float

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Names of the dtypes of its results."""
        return tuple([s.dtype.name for s in self.cost.outputs])

    @property
    def at(self) -> str:
        """Its name and line."""
        return f"{self.name} at {_line(self.cost)}"


Pairs = Sequence[tuple[StepWork, StepWork]]


def paired(old: Sequence[StepTime], new: Sequence[StepTime]) -> tuple[tuple[StepTime | None, StepTime | None], ...]:
    """The aligned steps of two programs."""
    keys = [[s.cost.parts or s.cost.primitive for s in steps] for steps in (old, new)]
    return tuple([(None if a is None else old[a], None if b is None else new[b]) for a, b in _in_line(*keys)])


def differences(old: Side, new: Side) -> tuple[Difference, ...]:
    """The costs of `new` that `old` does not have, or has less of, most expensive first."""
    theirs, ours = list(_work(old)), list(_work(new))
    pairs = _in_line([(w.depth, w.name) for w in theirs], [(w.depth, w.name) for w in ours])
    both = [(theirs[a], ours[b]) for a, b in pairs if a is not None and b is not None]
    added = [ours[b] for a, b in pairs if a is None and b is not None]
    found = [
        *_ways(old, new), *_wider(both), *_contractions(theirs, ours), *_fusions(old, new, both), *_added(added, both),
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda d: -d.ms))


def _work(side: Side) -> Iterator[StepWork]:
    for v in walk(side.profile.steps):
        if v.step is not None:
            c, n = v.step.cost, max(1, len(v.step.cost.parts))
            each = [float(x) if isinstance(x, (int, float)) else 0.0 for x in (v.step.ms, c.flops, c.bytes)]
            for name in c.parts or (c.primitive,):
                yield StepWork(name, len(v.bodies), c, v.times, n, *[v.times * x / n for x in each])


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


def _ways(old: Side, new: Side) -> Iterator[Difference]:
    """Traces in each call, the way in which the program runs, and transfers."""
    replayed = min(new.ms, new.profile.ms)
    if new.traces > old.traces:
        often = "each call" if new.traces == 1 else f"{new.traces:g} times in each call"
        text = f"compiles a function anew in {often}; keep the compiled function"
        text = f"is traced anew in {often}: {new.reason}" if new.compiled else text
        yield Difference("retrace", text, new.ms - replayed)
    if old.native and not new.native and (new.compiled or not new.traces):
        why = f"it {new.form}" if new.form else "its only step is a kernel"
        why = why if new.compiled else "it is not compiled as a whole"
        yield Difference("native", f"does not run as one native function: {why}", new.ms - old.ms)
    if new.transfers > old.transfers:
        steps = [s for s in new.profile.steps if s.cost.primitive == "transfer"]
        at = f", the first at {_line(steps[0].cost)}" if steps else ""
        moved = f"makes {new.transfers} transfers between memories instead of {old.transfers}"
        ms = sum([s.ms for s in steps]) or new.ms - replayed
        yield Difference("transfer", f"{moved}, of {readable(new.moved_bytes, 'B')}{at}", ms)


def _wider(both: Pairs) -> Iterator[Difference]:
    """Steps whose results have a wider dtype."""
    changed = [(a, b) for a, b in both if a.dtypes != b.dtypes and b.bytes > a.bytes]
    if changed:
        a, b = changed[0]
        steps = f"{len(changed)} steps, which move" if len(changed) > 1 else "a step, which moves"
        more = sum([y.bytes for _, y in changed]) / max(1.0, sum([x.bytes for x, _ in changed]))
        text = (
            f"computes with {', '.join(b.dtypes)} instead of {', '.join(a.dtypes)} from {b.at} on, in "
            f"{steps} {more:.3g} times as many bytes"
        )
        yield Difference("dtype", text, sum([y.ms - x.ms for x, y in changed]))


def _contractions(theirs: Sequence[StepWork], ours: Sequence[StepWork]) -> Iterator[Difference]:
    """Contractions and other steps that compute more."""
    kinds = ("contraction", "contractions", "; another order of the operands is cheaper"), ("operations", "steps", "")
    for kind, what, advice in kinds:
        a, b = ([w for w in side if (w.name in CONTRACTIONS) == (kind == "contraction")] for side in (theirs, ours))
        before, after = (sum([w.flops for w in side if not w.cost.bodies]) for side in (a, b))
        if after > MORE * before and before:
            most = max(b, key=lambda w: w.flops if not w.cost.bodies else 0.0)
            text = (
                f"computes {after / before:.3g} times as much in its {what}, {readable(after, 'flop')} instead of "
                f"{readable(before, 'flop')}, most of it in {most.at}{advice}"
            )
            yield Difference(kind, text, sum([w.ms for w in b]) - sum([w.ms for w in a]))


def _fusions(old: Side, new: Side, both: Pairs) -> Iterator[Difference]:
    if old.nests is not None and new.nests is not None and new.nests > old.nests:
        text = f"passes over memory in {new.nests} loop nests instead of {old.nests}: fewer steps are fused"
        yield Difference("fusion", text, min(new.ms, new.profile.ms) - min(old.ms, old.profile.ms))
    lost = [(a, b) for a, b in both if a.parts > 1 and b.parts == 1]
    if lost and not (old.native or new.native):
        names = ", ".join(dict.fromkeys([b.name for _, b in lost]))
        text = f"runs {names} at {_line(lost[0][1].cost)} as steps of their own, which the other has fused"
        yield Difference("fusion", text, sum([b.ms - a.ms for a, b in lost]))


def _added(added: Sequence[StepWork], both: Pairs) -> Iterator[Difference]:
    """Steps that only one program has, by kind."""
    copies = [b for a, b in both if b.name in MOVES and not a.bytes and b.bytes and b.parts == 1]
    kinds: dict[str, list[StepWork]] = {"copy": copies} if copies else {}
    for w in added:
        if w.name in CALLBACKS:
            kinds.setdefault("callback", []).append(w)
        elif w.name != "transfer" and w.bytes:
            kinds.setdefault("copy" if w.name in MOVES else "step", []).append(w)
    verbs = {"callback": "calls back into Python", "copy": "copies", "step": "has more steps"}
    for kind, found in kinds.items():
        each = list(dict.fromkeys([w.at for w in found]))
        count = sum([w.times for w in found])
        moved = f", {readable(sum([w.bytes for w in found]), 'B')} in all" if kind == "copy" else ""
        times = "" if kind == "step" else f" {count} time{'s' * (count != 1)} more"
        text = f"{verbs[kind]}{times}{moved}: {', '.join(each[:4])}" + ", …" * (len(each) > 4)
        yield Difference(kind, text, sum([w.ms for w in found]))


def _line(cost: StepCost) -> str:
    return brief(cost.where) if cost.where else "an unknown line"
