"""`Comparison`: two programs side by side, and why one of them takes longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenferro_runtime.reports._table import Tabular, TextTable
from tenferro_runtime.reports._time import Profile, StepTime
from tenferro_tensor.markup import details, readable
from tenferro_tensor_core import DimLike


@dataclass(frozen=True, slots=True)
class Side:
    """One of two programs that are compared.

    Attributes:
        title: name of the function.
        compiled: whether it is a compiled function or a program.
        ms: median time of a call, in milliseconds.
        profile: times of the steps, measured one by one.
        flops: operations of all steps with a cost model.
        bytes: bytes that the steps read and write.
        peak_bytes: peak of the live bytes, ``None`` if sizes are symbolic.
        nests: number of loop nests of its native function, ``None`` if it has none.
        traces: traces per call with known arguments.
        reason: reason of the latest trace, with the line of the call.
        transfers: transfers between memories per call.
        moved_bytes: their bytes.
        passes: passes that changed the program, each with the number of steps before and after it.
    """

    title: str
    compiled: bool
    ms: float
    profile: Profile
    flops: DimLike
    bytes: DimLike
    peak_bytes: int | None
    nests: int | None
    traces: float
    reason: str
    transfers: int
    moved_bytes: int
    passes: tuple[tuple[str, int, int], ...]

    @property
    def form(self) -> str:
        """How its program runs."""
        return self.profile.form

    @property
    def native(self) -> bool:
        """Whether its program runs as one native function."""
        return self.nests is not None


@dataclass(frozen=True, slots=True)
class Difference:
    """A cost of one program that the other does not have, or has less of.

    Attributes:
        kind: ``"retrace"``, ``"native"``, ``"fusion"``, ``"callback"``, ``"transfer"``, ``"copy"``, ``"dtype"``,
            ``"contraction"``, ``"operations"`` or ``"step"``.
        text: description, with the source line.
        ms: milliseconds that it may account for, as measured.
    """

    kind: str
    text: str
    ms: float


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabular):
    """Two programs, their steps side by side; prints as a sentence and tables. Made by `tr.compare`.

    Attributes:
        old: the first program.
        new: the second one.
        steps: pairs of corresponding steps; ``None`` for a step that only one program has.
        costs: differences that cost time in the second program, most expensive first.
        savings: differences that cost time in the first program.
    """

    old: Side
    new: Side
    steps: tuple[tuple[StepTime | None, StepTime | None], ...]
    costs: tuple[Difference, ...]
    savings: tuple[Difference, ...]

    @property
    def sentence(self) -> str:
        """The main reasons of the difference."""
        slow, fast = (self.new, self.old) if self.new.ms >= self.old.ms else (self.old, self.new)
        reasons = self.costs if slow is self.new else self.savings
        times = f"{slow.ms / fast.ms:.2g} times" if fast.ms else "infinitely"
        said = f"{slow.title} takes {times} as long as {fast.title} ({slow.ms:.3g} ms, {fast.ms:.3g} ms)"
        return f"{said}: it {reasons[0].text}" if reasons else f"{said}, and does nothing that explains it"

    def _table(self) -> TextTable:
        sides = self.old, self.new

        def row(title: str, of: Callable[[Side], str]) -> tuple[str, ...]:
            return title, *map(of, sides)

        rows = [
            row("", lambda s: "compiled" if s.compiled else "not compiled"),
            row("ms of a call", lambda s: f"{s.ms:.4f}"),
            row("ms of all steps, one by one", lambda s: f"{sum(step.ms for step in s.profile.steps):.4f}"),
            row("operations", lambda s: readable(s.flops)),
            row("bytes moved", lambda s: readable(s.bytes, "B")),
            row("peak of bytes", lambda s: readable(s.peak_bytes, "B")),
            row("steps", lambda s: str(len(s.profile.steps))),
            row("steps inside of fused ones", lambda s: str(sum([len(step.cost.parts) for step in s.profile.steps]))),
            row("loop nests of the native function", lambda s: "none" if s.nests is None else str(s.nests)),
            row("traces for each call", lambda s: f"{s.traces:g}"),
            row("transfers for each call", _moved),
            *_passes(*sides),
        ]
        said = [
            f"{side.title} {d.text}"
            for side, found in ((self.new, self.costs), (self.old, self.savings))
            for d in found
        ]
        return TextTable(("", self.old.title, self.new.title), rows, frozenset({1, 2}), "\n".join(said))

    @property
    def _heading(self) -> str:
        return self.sentence

    def _steps(self) -> TextTable:
        rows = [(*_cells(old), *_cells(new), next(s.cost.where for s in (new, old) if s)) for old, new in self.steps]
        head = (self.old.title, "result", "ms", self.new.title, "result", "ms", "line")
        return TextTable(head, rows, frozenset({2, 5}))

    def __repr__(self) -> str:
        return f"{self.sentence}\n\n{self._table().text()}\n\n{self._steps().text()}"

    def _parts(self) -> Sequence[object]:
        return self._table().html(), details("Steps side by side", self._steps().html(), open_=True)


def _moved(side: Side) -> str:
    return f"{side.transfers}, {readable(side.moved_bytes, 'B')}" if side.transfers else "none"


def _passes(old: Side, new: Side) -> list[tuple[str, str, str]]:
    """Rows of the passes that removed different numbers of steps in the two programs."""
    found = [{name: f"{before} to {after} steps" for name, before, after in side.passes} for side in (old, new)]
    names = [name for name in dict.fromkeys([*found[0], *found[1]]) if found[0].get(name) != found[1].get(name)]
    return [(f"pass {name}", found[0].get(name, "nothing"), found[1].get(name, "nothing")) for name in names]


def _cells(s: StepTime | None) -> tuple[str, str, str]:
    return ("", "", "") if s is None else (s.cost.primitive, ", ".join(map(str, s.cost.outputs)), f"{s.ms:.4f}")
