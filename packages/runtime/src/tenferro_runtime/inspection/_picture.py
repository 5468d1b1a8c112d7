"""The picture of a program: boxes and curves in SVG, and below them the contents of loops and fused steps.

Boxes are in rows by depth, within a row near the middle of the boxes that they read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tenferro_runtime.inspection._graph import Box, folded, graph
from tenferro_runtime.ir._program import Program
from tenferro_runtime.running._execute import lowered
from tenferro_tensor.markup import COLOURS, Markup, details, element, joined, picture, preformatted

KINDS: Final = {
    "input": "blue", "constant": "grey", "output": "green", "contraction": "orange", "element-wise": "sky",
    "fused": "sky", "program": "purple", "several": "grey", "view": None, "other": None,
}  # fmt: skip
"""Colour of a box by kind of step."""

FILLS: Final = {
    "input": "#cfe2f3", "constant": "#e6e6e6", "output": "#d9ead3", "view": "#f7f7f7", "contraction": "#f9cb9c",
    "element-wise": "#fff2cc", "fused": "#fff2cc", "program": "#d9d2e9", "other": "#ffffff",
}  # fmt: skip
"""The same as opaque colours for Graphviz."""

DASHED: Final = frozenset({"fused", "program", "several"})
"""Kinds of boxes that hold several steps."""

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 196, 34, 14, 22, 3
"""Boxes and the space between them, in pixels."""

MAX_OPENED: Final = 10
"""Largest number of boxes of one drawing that can be opened."""

MAX_DEPTH: Final = 3
"""Largest depth of nested programs that can be opened."""

MAX_LINES: Final = 60
"""Largest number of lines of a program as text."""


def program_picture(program: Program) -> Markup:
    """The steps that run as one drawing, without nested programs."""
    return _drawn(program, folded(graph(lowered(program))))


def opened(program: Program, depth: int = 0) -> Markup:
    """The drawing, and below it an expandable part for each box that runs programs or contains several steps."""
    nodes = folded(graph(lowered(program)))
    several = [n for n in nodes if n.inside or n.kind == "several"]
    parts = [_inner(n, depth) for n in several[:MAX_OPENED]]
    if len(several) > MAX_OPENED:
        parts.append(element("div", f"and {len(several) - MAX_OPENED} more boxes of several steps", class_="q"))
    return joined([_drawn(program, nodes), *parts])


def _drawn(program: Program, nodes: Sequence[Box]) -> Markup:
    places, columns, rows = _placed(nodes)
    width, height = columns * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN, rows * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
    corners = [(MARGIN + x * (WIDTH + GAP_X), MARGIN + y * (HEIGHT + GAP_Y)) for x, y in places]
    return picture(width, height, *_edges(nodes, corners), *map(_box, nodes, corners), label=repr(program))


def _inner(n: Box, depth: int) -> Markup:
    programs = n.inside[:MAX_OPENED] if depth < MAX_DEPTH else ()
    drawn = [joined([element("div", title, class_="q"), opened(p, depth + 1)]) for title, p in programs]
    listed = [preformatted(cut_lines(n.note))] if n.kind == "several" else []
    summary = joined([element("b", n.label), f" {n.detail}"])
    return details(summary, element("div", *listed, *drawn, style="margin-left:18px"))


def legend() -> Markup:
    """The legend of colours."""
    style = "border:1px {} {};border-radius:4px;padding:1px 7px;margin-right:6px;background:{}"
    parts = []
    for kind, colour in KINDS.items():
        hue = COLOURS[colour or "grey"]
        filled = f"{hue}40" if colour else "none"
        parts.append(element("span", kind, style=style.format("dashed" if kind in DASHED else "solid", hue, filled)))
    return element("div", *parts, style="margin:4px 0")


def title(program: Program) -> str:
    """A short description of a program."""
    counts = [(len(program.input_ids), "input"), (len(program.equations), "step"), (len(program.output_ids), "output")]
    return f"program of {', '.join([f'{n} {what}' + 's' * (n != 1) for n, what in counts])}"


def cut_lines(text: str) -> str:
    """Text without its middle if it is long."""
    lines = text.splitlines()
    if len(lines) <= MAX_LINES:
        return text
    half = MAX_LINES // 2
    return "\n".join([*lines[:half], f"  … {len(lines) - 2 * half} more lines", *lines[-half:]])


def _placed(nodes: Sequence[Box]) -> tuple[list[tuple[float, int]], int, int]:
    """Column and row of each box, and the numbers of columns and rows."""
    depth: list[int] = []
    sink = [len(nodes)] * len(nodes)
    for n in nodes:
        depth.append(1 + max([depth[r] for r in n.reads], default=-1))
        for r in n.reads:
            sink[r] = min(sink[r], depth[-1])
    for n in nodes:  # boxes that are read late move down to their reader, so that constants are next to their use
        if not n.reads and sink[n.index] < len(nodes):
            depth[n.index] = sink[n.index] - 1
    rows: dict[int, list[Box]] = {}
    for n in nodes:
        rows.setdefault(depth[n.index], []).append(n)
    columns = max(map(len, rows.values()), default=1)
    x = [0.0] * len(nodes)
    for d in sorted(rows):
        row = sorted(rows[d], key=lambda n: (_middle(x, n), n.index))
        start = (columns - len(row)) / 2
        for i, n in enumerate(row):
            x[n.index] = start + i
    return [(x[n.index], depth[n.index]) for n in nodes], columns, max(rows, default=0) + 1


def _middle(x: list[float], n: Box) -> float:
    return sum([x[r] for r in n.reads]) / len(n.reads) if n.reads else float(n.index)


Corners = Sequence[tuple[float, float]]


def _edges(nodes: Sequence[Box], corners: Corners) -> Iterator[Markup]:
    for n, (x1, y1) in zip(nodes, corners, strict=True):
        for k, (x0, y0) in enumerate([corners[r] for r in n.reads], 1):
            a, b, low = x0 + WIDTH / 2, x1 + WIDTH * k / (len(n.reads) + 1), y0 + HEIGHT
            bend = (y1 - low) / 2
            curve = f"M{a:.0f},{low:.0f} C{a:.0f},{low + bend:.0f} {b:.0f},{y1 - bend:.0f} {b:.0f},{y1:.0f}"
            near = y1 - low == GAP_Y  # other edges pass behind boxes and are drawn faintly
            yield element("path", d=curve, fill="none", stroke=COLOURS["grey"], stroke_opacity=0.9 if near else 0.35)


def _box(n: Box, corner: tuple[float, float]) -> Markup:
    x, y = map(round, corner)
    hue, colour = KINDS[n.kind], COLOURS[KINDS[n.kind] or "grey"]
    return element(
        "g",
        element("title", cut_lines(n.note or f"{n.label}: {n.detail}")),
        element(
            "rect", x=x, y=y, width=WIDTH, height=HEIGHT, rx=5, fill=colour if hue else "none",
            fill_opacity=0.25 if hue else None, stroke=colour, stroke_dasharray="5 3" if n.kind in DASHED else None,
        ),
        element("text", _cut(n.label, 30), x=x + 8, y=y + 14),
        element("text", _cut(n.detail, 32), x=x + 8, y=y + 27, class_="q"),
    )  # fmt: skip


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
