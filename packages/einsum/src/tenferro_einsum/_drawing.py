"""A contraction as a tree over time: which values are joined at each step, and beside it the bytes that are alive.

Operands stand in a row, in an order in which no lines cross; below them each step is a line of its own, so that the
bars on the right belong to the joins on the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tenferro_einsum._report import MAX_PRINTED_STEPS, amount, gauge
from tenferro_runtime.extension import ArgumentError
from tenferro_tensor.markup import COLOURS, Markup, card, details, element, page, picture, preformatted, standalone

if TYPE_CHECKING:
    from tenferro_einsum._report import ContractionStep, PathReport

FORMATS: Final = ("text", "svg", "html")

TREE_WIDTH: Final = 430
"""Pixels of a wide tree; of one with few operands `SLOT` for each."""

SLOT: Final = 52
ROW: Final = 20
"""Pixels from step to step, where there are few."""

TALL: Final = 900
"""Pixels of all steps together, at most."""

BARS: Final = 200
"""Pixels of the largest number of bytes."""

LABELLED: Final = 12
"""Fewest pixels that a line of text needs."""

MAX_NOTES: Final = 150
"""Steps that say more when they are pointed at."""

CUT: Final = 16
"""Characters of labels, at most."""


def draw(report: PathReport, path: str | PathLike[str] | None, format: str | None) -> str:
    """The drawing in one of the formats; see `PathReport.draw`."""
    if format is None:
        format = Path(path).suffix.removeprefix(".").replace("txt", "text") if path is not None else "text"
    if format not in FORMATS:
        raise ArgumentError(f"draw writes {', '.join(FORMATS)}, got {format=}; name the file x.txt, x.svg or x.html")
    if format == "text":
        text = "\n".join(_lines(report)) + "\n"
    elif format == "svg":
        text = standalone(tree_picture(report))
    else:
        text = page("contraction", report_card(report))
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def report_card(report: PathReport) -> str:
    """A contraction as a notebook shows it: its tree, and its table to open."""
    facts = f" {len(report.operands)} operands, {report.flops:.3g} operations, {amount(report.peak)} at once"
    if report.sliced:
        names = ", ".join([f"{name} in {parts} parts" for name, parts in report.sliced])
        facts += f", in {report.slices} slices of {names}"
    text = details("as a table", preformatted(str(report)))
    return card(element("b", "contraction"), element("span", facts), tree_picture(report), text)


def tree_picture(report: PathReport) -> Markup:
    """The tree and the bytes alive at each step."""
    count, steps = len(report.operands), report.steps
    at = _columns(report)
    slot = min(SLOT, TREE_WIDTH / max(count, 1))
    row = min(ROW, TALL / max(len(steps), 1))
    head = 16 + (7 * min(CUT, max(map(len, report.operands), default=0)) if slot < SLOT and slot >= LABELLED else 12)
    x = [slot * (c + 0.5) for c in at]
    y = [float(head)] * count + [head + row * (i + 1) for i in range(len(steps))]
    right = slot * count + 24
    labels = 7 * min(CUT, max([len(s.result) for s in steps], default=0)) + 12 if row >= LABELLED else 0
    bars = right + labels
    drawn = [
        *_operands(report.operands, x, head, slot),
        *_joins(report, x, y),
        *_steps(report, x, y, row, right, bars),
    ]
    width, height = bars + BARS + 90, head + row * (len(steps) + 1) + 6
    return picture(width, height, *drawn, label="tree of a contraction, with bytes alive at each step")


def _columns(report: PathReport) -> list[float]:
    """For each value its column: operands as leaves of the tree from left to right, results between what they join."""
    count, steps = len(report.operands), report.steps
    order: list[int] = []
    stack = [count + len(steps) - 1] if steps else list(range(count))
    while stack:
        v = stack.pop()
        if v < count:
            order.append(v)
        else:
            stack.extend(reversed(steps[v - count].operands))
    at = [0.0] * count
    for column, v in enumerate(order):
        at[v] = float(column)
    for s in steps:
        at.append(sum([at[v] for v in s.operands]) / len(s.operands))
    return at


def _operands(names: Sequence[str], x: Sequence[float], head: int, slot: float) -> Iterator[Markup]:
    if slot < LABELLED:
        return
    for name, left in zip(names, x):
        place = {"transform": f"translate({left + 4:.0f} {head - 6}) rotate(-90)"} if slot < SLOT else {
            "x": round(left), "y": head - 6, "text_anchor": "middle"
        }  # fmt: skip
        yield element("text", cut(name), **place)


def _joins(report: PathReport, x: Sequence[float], y: Sequence[float]) -> Iterator[Markup]:
    """Lines from what a step takes down to where it is made; the more bytes a value has, the thicker."""
    count = len(report.operands)
    paths: dict[float, list[str]] = {}
    for i, s in enumerate(report.steps, count):
        across = [x[v] for v in s.operands]
        paths.setdefault(1.0, []).append(f"M{min(across):.1f},{y[i]:.1f}H{max(across):.1f}")
        for v in s.operands:
            thick = (
                1.2 if v < count else min(6.0, 1.2 + max(0.0, log10(max(1, report.steps[v - count].bytes)) - 2) / 1.5)
            )
            paths.setdefault(round(thick, 1), []).append(f"M{x[v]:.1f},{y[v]:.1f}V{y[i]:.1f}")
    for thick, parts in paths.items():
        yield element("path", d="".join(parts), fill="none", stroke=COLOURS["grey"], stroke_width=thick)


def _steps(
    report: PathReport, x: Sequence[float], y: Sequence[float], row: float, right: float, bars: float
) -> Iterator[Markup]:
    """A dot where a value is made, its labels, and the bytes alive meanwhile; the peak in another colour."""
    count, steps = len(report.operands), report.steps
    top = max([s.alive for s in steps], default=0)
    largest = max([s.bytes for s in steps], default=0)
    peak = max(range(len(steps)), key=lambda i: steps[i].alive, default=0)
    lengths = [BARS * s.alive / top if top else 0.0 for s in steps]
    if len(steps) > MAX_NOTES:
        outline = [f"M{bars:.0f},{y[count + i]:.1f}h{length:.1f}" for i, length in enumerate(lengths)]
        yield element("path", d="".join(outline), stroke=COLOURS["blue"], stroke_width=0.8 * row, stroke_opacity=0.6)
    for i, s in enumerate(steps):
        if len(steps) > MAX_NOTES and i != peak:
            continue
        v, end = count + i, bars + lengths[i] + 5
        dot, hue = (COLOURS["orange" if s.bytes == largest else "blue"], COLOURS["red" if i == peak else "blue"])
        bar = {"x": bars, "y": y[v] - 0.4 * row, "width": lengths[i], "height": 0.8 * row}
        parts = [
            element("title", _note(i, s)),
            element("circle", cx=x[v], cy=y[v], r=min(4.0, row / 2), fill=dot),
            element("rect", **bar, fill=hue, fill_opacity=0.6),
        ]
        if row >= LABELLED:
            parts.append(element("text", cut(s.result) or "scalar", x=right, y=y[v] + 4))
        if i == peak:
            parts.append(element("text", f"peak {amount(s.alive)}", x=end, y=y[v] + 4))
        elif row >= LABELLED and s.alive:
            parts.append(element("text", amount(s.alive), x=end, y=y[v] + 4, class_="q"))
        yield element("g", *parts)


def _note(i: int, s: ContractionStep) -> str:
    return f"step {i}: {s.equation}\n{s.flops:.3g} operations, result {amount(s.bytes)}, {amount(s.alive)} alive"


def cut(labels: str) -> str:
    """Labels, the first of them where there are many."""
    return labels if len(labels) <= CUT else f"{labels[: CUT - 1]}…"


def _lines(report: PathReport) -> Iterator[str]:
    """The tree for a terminal, the result first, each value above those that it is made of."""
    count, steps = len(report.operands), report.steps
    top = max([s.alive for s in steps], default=0)
    rows: list[tuple[str, str]] = []
    stack = [(count + len(steps) - 1, "", "")] if steps else [(v, "", "") for v in reversed(range(count))]
    while stack:
        v, lead, below = stack.pop()
        if v < count:
            rows.append((f"{lead}{cut(report.operands[v]) or 'scalar'}", ""))
            continue
        s = steps[v - count]
        peak = "  peak" if s.alive == top else ""
        said = f"step {v - count:>3}  {s.flops:>9.2e}  {amount(s.alive):>10}  {gauge(s.alive, top)}{peak}"
        rows.append((f"{lead}{cut(s.result) or 'scalar'}", said))
        *others, last = s.operands
        stack.append((last, f"{below}└─ ", f"{below}   "))
        stack.extend([(u, f"{below}├─ ", f"{below}│  ") for u in reversed(others)])
    if report.sliced:
        yield f"{report.slices} slices: " + ", ".join([f"{name} in {parts} parts" for name, parts in report.sliced])
    width = min(60, max([len(left) for left, _ in rows], default=0))
    shown = (
        rows if len(rows) <= 2 * MAX_PRINTED_STEPS else [*rows[:MAX_PRINTED_STEPS], None, *rows[-MAX_PRINTED_STEPS:]]
    )
    for line in shown:
        yield (
            f"... {len(rows) - 2 * MAX_PRINTED_STEPS} more lines"
            if line is None
            else f"{line[0]:<{width}}  {line[1]}".rstrip()
        )
