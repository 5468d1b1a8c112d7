"""`BadStep`: the step that produced a NaN or an infinity, with its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_runtime.reports._table import Report, TextTable
from tenferro_tensor.markup import element


@dataclass(frozen=True, slots=True)
class Statistics:
    """A summary of the elements of an array.

    Attributes:
        name: its name in the program.
        shape: its shape.
        dtype: name of its dtype.
        nan: number of elements that are NaN.
        inf: number of infinite elements.
        smallest: smallest finite element, by absolute value if complex; ``None`` if there is none.
        largest: largest finite element.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nan: int
    inf: int
    smallest: float | None
    largest: float | None

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}, {self.nan} nan, {self.inf} inf, {_between(self)}"


def _between(s: Statistics) -> str:
    return "no finite element" if s.smallest is None else f"from {s.smallest:.6g} to {s.largest:.6g}"


@dataclass(frozen=True, slots=True, repr=False)
class BadStep(Report):
    """The first step that produces a NaN or an infinity from finite values.

    Attributes:
        step: the step as it is printed, or the input or constant that is not finite.
        path: indices of the enclosing steps and, last, of the step in its program.
        where: line of user code.
        operands: statistics of the operands.
        results: statistics of the results.
        iterations: iteration of each enclosing step that is a loop, counted from 0, else ``None``.
    """

    step: str
    path: tuple[int, ...]
    where: str
    operands: tuple[Statistics, ...]
    results: tuple[Statistics, ...]
    iterations: tuple[int | None, ...] = ()

    def __repr__(self) -> str:
        lines = [self.step, *[f"  {role}   {s}" for role, s in self._values()]]
        if self.where:
            lines.append(f"  traced at {self.where}")
        return "\n".join(lines)

    @property
    def _heading(self) -> str:
        return self.step

    def _parts(self) -> Sequence[object]:
        rows = [
            (role, s.name, f"{s.dtype}{list(s.shape)}", str(s.nan), str(s.inf), _between(s))
            for role, s in self._values()
        ]
        table = TextTable(("", "value", "spec", "nan", "inf", "finite elements"), rows, frozenset({3, 4}))
        return table.html(), element("div", f"traced at {self.where}" if self.where else "", class_="q")

    def _values(self) -> list[tuple[str, Statistics]]:
        return [*[("from", s) for s in self.operands], *[("made", s) for s in self.results]]
