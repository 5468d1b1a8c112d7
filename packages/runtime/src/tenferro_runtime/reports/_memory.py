"""`MemoryTimeline`: the live bytes at each step of a program, by the source line that allocated them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Final

from tenferro_runtime.reports._lines import brief, code_at
from tenferro_runtime.reports._table import Tabular, TextTable
from tenferro_tensor.markup import COLOURS, Markup, element, joined, picture, preformatted, readable, standalone

WIDTH: Final = 640
HEIGHT: Final = 180
LEFT: Final = 70
BOTTOM: Final = 24
TOP: Final = 22
"""Size of the chart and of its margins, in pixels."""

MAX_LINES: Final = 6
"""Number of source lines with separate colours; the others share one."""

MAX_NOTES: Final = 200
"""Largest number of steps with tooltips."""

LEGEND_ROW: Final = 17
"""Pixels of a line of the legend of a file."""

MAX_CODE: Final = 100
"""Characters of a line of code in it."""

MAX_ROWS: Final = 60
"""Lines of code in the table of a notebook."""

HUES: Final = tuple([COLOURS[name] for name in ("blue", "orange", "green", "sky", "red", "purple", "grey")])


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Memory that a step allocates.

    Attributes:
        line: source line of the step, empty if it is unknown.
        step: number of the step.
        last: number of the last step that needs it.
        nbytes: its size.
    """

    line: str
    step: int
    last: int
    nbytes: int


@dataclass(frozen=True, slots=True, repr=False)
class MemoryTimeline(Tabular):
    """The memory of a program over its steps, without inputs and constants; prints as a table of source lines.

    Attributes:
        steps: the steps as they are called.
        blocks: what they allocate; of a loop, what its body needs at once.
    """

    _heading = "Memory by line of code"

    steps: tuple[str, ...]
    blocks: tuple[MemoryBlock, ...]

    @property
    def alive(self) -> tuple[int, ...]:
        """Bytes alive during each step."""
        return tuple(_alive(self.blocks, len(self.steps)))

    @property
    def peak_step(self) -> int:
        """The first step with the peak of live bytes; 0 if there are no steps."""
        alive = self.alive
        return alive.index(max(alive)) if alive else 0

    @property
    def lines(self) -> tuple[tuple[str, int, int], ...]:
        """Source lines with their live bytes at the peak and all bytes that they allocate, largest first."""
        peak, found = self.peak_step, dict[str, list[int]]()
        for b in self.blocks:
            sums = found.setdefault(b.line, [0, 0])
            sums[0] += b.nbytes if b.step <= peak <= b.last else 0
            sums[1] += b.nbytes
        return tuple(sorted([(line, *sums) for line, sums in found.items()], key=lambda row: (-row[1], -row[2])))  # type: ignore[misc]

    def _table(self) -> TextTable:
        rows = [(brief(line), readable(at, "B"), readable(made, "B"), code_at(line)) for line, at, made in self.lines]
        peak = self.peak_step
        name = self.steps[peak] if self.steps else "none"
        foot = f"peak {readable(self._peak, 'B')} at step {peak}, {name}, beside inputs and constants"
        return TextTable(("line", "at the peak", "allocated", "code"), rows, frozenset({1, 2}), foot)

    @property
    def _peak(self) -> int:
        return max(self.alive, default=0)

    def _parts(self) -> Sequence[Markup]:
        return (self.chart(),)

    def draw(self, path: str | PathLike[str] | None = None) -> str:
        """The bytes over the steps in SVG, an area for each line of code; written to a file if a path is given.

        Args:
            path: the file.

        Returns:
            The drawing.
        """
        drawn = standalone(self._picture(legend=True))
        if path is not None:
            Path(path).write_text(drawn, encoding="utf-8")
        return drawn

    def chart(self) -> Markup:
        """The same with the table of the lines in their colours, as markup."""
        table, rows = self._table(), []
        for i, row in enumerate(table.rows[:MAX_ROWS]):
            hue = min(i, MAX_LINES)
            swatch = element("td", element("span", " ", style=f"background:{HUES[hue]}99;padding:0 6px"))
            cells = [element("td", cell, class_="n" if k in table.right else None) for k, cell in enumerate(row)]
            rows.append(element("tr", swatch, *cells, data_line=hue))
        head = element("tr", *[element("th", t) for t in ("", *table.head)])
        return joined([self._picture(), element("table", head, *rows), preformatted(table.foot)])

    def _picture(self, legend: bool = False) -> Markup:
        lines = [line for line, _, _ in self.lines]
        groups = [[line] for line in lines[:MAX_LINES]] + ([lines[MAX_LINES:]] if lines[MAX_LINES:] else [])
        named = lines[:MAX_LINES] if legend else []
        drawn = [*self._areas(groups), *self._axes()]
        for i, line in enumerate(named):
            y = TOP + HEIGHT + BOTTOM + LEGEND_ROW * (i + 1)
            drawn.append(element("rect", x=LEFT, y=y - 9, width=12, height=10, fill=HUES[i], fill_opacity=0.6))
            drawn.append(element("text", _noted(line)[:MAX_CODE], x=LEFT + 20, y=y))
        height = TOP + HEIGHT + BOTTOM + LEGEND_ROW * (len(named) + 1) * bool(named)
        return picture(LEFT + WIDTH + 10, height, *drawn, label="bytes alive at each step, by line of code")

    def _areas(self, groups: Sequence[Sequence[str]]) -> Iterator[Markup]:
        """Stacked areas, one for each source line."""
        count, top = len(self.steps), max(self._peak, 1)
        below = [0] * count
        for i, group in enumerate(groups):
            here = _alive([b for b in self.blocks if b.line in group], count)
            above = [a + b for a, b in zip(below, here, strict=True)]
            edges = [_stairs(level, count, top) for level in (above, below)]
            path = f"M{' '.join(edges[0])}L{' '.join(reversed(edges[1]))}Z"
            note = element("title", "\n".join(map(_noted, group)))
            yield element("path", note, d=path, fill=HUES[i], fill_opacity=0.6, data_line=i)
            below = above

    def _axes(self) -> Iterator[Markup]:
        count, peak, grey = len(self.steps), self.peak_step, COLOURS["grey"]
        base, at = TOP + HEIGHT, LEFT + WIDTH * (peak + 0.5) / max(count, 1)
        said = f"peak {readable(self._peak, 'B')}, step {peak}"
        end = "end" if at > LEFT + WIDTH / 2 else "start"
        yield element("path", d=f"M{LEFT},{TOP}V{base}H{LEFT + WIDTH}", fill="none", stroke=grey)
        yield element("path", d=f"M{at:.1f},{TOP - 4}V{base}", stroke=grey, stroke_dasharray="4 3")
        yield element("text", said, x=round(at), y=TOP - 8, text_anchor=end)
        yield element("text", readable(max(self._peak, 1), "B"), x=LEFT - 6, y=TOP + 4, text_anchor="end")
        yield element("text", "0", x=LEFT - 6, y=base, text_anchor="end")
        yield element("text", f"step 0 to {max(count - 1, 0)}", x=LEFT, y=base + 16, class_="q")
        for i, (name, n) in enumerate(zip(self.steps, self.alive, strict=True) if count <= MAX_NOTES else ()):
            note = element("title", f"step {i}: {name}, {readable(n, 'B')}")
            strip = {"x": LEFT + i * WIDTH / count, "y": base, "width": WIDTH / count, "height": 6}
            yield element("rect", note, **strip, fill=grey, fill_opacity=0.3 + 0.4 * (i % 2))


def _alive(blocks: Sequence[MemoryBlock], count: int) -> list[int]:
    """Bytes alive at each step."""
    change = [0] * (count + 1)
    for b in blocks:
        change[b.step] += b.nbytes
        change[min(b.last, count - 1) + 1] -= b.nbytes
    return list(accumulate(change[:count]))


def _stairs(levels: Sequence[int], count: int, top: int) -> list[str]:
    """Corners of a step function."""
    corners = []
    for i, n in enumerate(levels):
        y = TOP + HEIGHT * (1 - n / top)
        corners += [f"{LEFT + WIDTH * (i + k) / count:.1f},{y:.1f}" for k in (0, 1)]
    return corners or [f"{LEFT},{TOP + HEIGHT}"]


def _noted(line: str) -> str:
    return f"{brief(line)}: {code_at(line)}"
