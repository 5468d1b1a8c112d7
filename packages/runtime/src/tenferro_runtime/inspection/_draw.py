"""`draw`: a program as a graph, in the DOT language or as one HTML page that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Final

from tenferro_runtime.costs._memory import plan_memory
from tenferro_runtime.inspection._explain import explain, step_costs
from tenferro_runtime.inspection._places import Box, placed
from tenferro_runtime.ir._program import Literal, Program, inner_programs
from tenferro_runtime.reports import StepCost, readable
from tenferro_tensor import Op
from tenferro_tensor_core import ArgumentError

FORMATS: Final = ("dot", "html")

COLOURS: Final = {
    "input": "#cfe2f3", "constant": "#e6e6e6", "output": "#d9ead3", "view": "#f7f7f7", "contraction": "#f9cb9c",
    "element-wise": "#fff2cc", "program": "#d9d2e9", "other": "#ffffff",
}  # fmt: skip
"""Fill of a box by kind of step."""

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 180, 34, 16, 26, 12
"""Boxes and the space between them, in pixels."""


def draw(program: Program, path: str | PathLike[str] | None = None, format: str | None = None) -> str:
    """The program as a graph; returns the text, and writes it to a file if a path is given.

    Args:
        program: the program.
        path: where to write; its ending chooses the format where none is given.
        format: ``"dot"``, or ``"html"`` for a page with the graph and the table of `explain`, without any script.

    Raises:
        ArgumentError: another format.
    """
    if format is None:
        format = Path(path).suffix.removeprefix(".") if path is not None else "dot"
    if format not in FORMATS:
        raise ArgumentError(f"draw writes {' or '.join(FORMATS)}, got {format=}; name the file x.dot or x.html")
    text = _dot(program) if format == "dot" else _html(program)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def graph(program: Program) -> list[Box]:
    """Boxes and what they read: inputs, constants, steps, outputs, in this order."""
    costs = step_costs(program, plan_memory(program))
    nodes: list[Box] = []
    of: dict[int, int] = {}

    def add(kind: str, label: str, note: str, reads: Iterator[int] | tuple[int, ...] = ()) -> int:
        nodes.append(Box(len(nodes), kind, label, note, tuple(dict.fromkeys(reads))))
        return len(nodes) - 1

    for v in program.input_ids:
        of[v] = add("input", program.label(v), repr(program.specs[v]))
    for v in program.constants:
        of[v] = add("constant", program.label(v), repr(program.specs[v]))
    for eq, c in zip(program.equations, costs, strict=True):
        numbers = [repr(v.value) for v in eq.operands if isinstance(v, Literal)]
        label = f"{eq.op.primitive.name}({', '.join(numbers)})" if numbers else eq.op.primitive.name
        made = add(_kind(eq.op, c), label, _note(program.show(eq), c), (of[v] for v in eq.variables))
        of.update(dict.fromkeys(eq.results, made))
    for i, v in enumerate(program.output_ids):
        add("output", f"output {i}", repr(program.specs[v]), (of[v],))
    return nodes


def _kind(op: Op, c: StepCost) -> str:
    if inner_programs(op.params):
        return "program"
    if c.kernel == "view":
        return "view"
    if c.primitive == "dot_general":
        return "contraction"
    return "element-wise" if op.primitive.elementwise else "other"


def _note(text: str, c: StepCost) -> str:
    return f"{text}\n{readable(c.flops, 'flop')}, {readable(c.bytes, 'B')}, {c.kernel} on {c.device}"


def _dot(program: Program) -> str:
    lines = ["digraph program {", '  node [shape=box, style="filled,rounded", fontname="sans-serif", fontsize=10];']
    for n in graph(program):
        shown = n.note.partition("\n")[0] if n.kind in ("input", "constant", "output") else ""
        label = _quoted(f"{n.label}\n{shown}" if shown else n.label)
        lines.append(f'  n{n.index} [label={label}, tooltip={_quoted(n.note)}, fillcolor="{COLOURS[n.kind]}"];')
        lines += [f"  n{r} -> n{n.index};" for r in n.reads]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _html(program: Program) -> str:
    nodes = graph(program)
    places, columns, rows = placed(nodes)
    width = columns * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    height = rows * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
    legend = "".join(f'<span style="background:{c}">{html.escape(k)}</span>' for k, c in COLOURS.items())
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8"><title>tenferro program</title><style>',
            "body{font:13px sans-serif;margin:16px;color:#222}pre{font-size:12px;overflow:auto}",
            ".legend span{border:1px solid #999;border-radius:4px;padding:2px 8px;margin-right:6px}",
            "text{font:12px sans-serif}text.s{font-size:10px;fill:#555}path{fill:none;stroke:#888}",
            "g:hover rect{stroke:#c00;stroke-width:2}.graph{overflow:auto;border:1px solid #ddd;margin:12px 0}",
            "</style></head><body>",
            f"<h1>{html.escape(repr(program))}</h1>",
            f'<p class="legend">{legend}</p>',
            f'<div class="graph"><svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
            *_edges(nodes, places),
            *_boxes(nodes, places),
            "</svg></div>",
            f"<pre>{html.escape(repr(explain(program)))}</pre>",
            "</body></html>",
            "",
        ]
    )


def _corner(place: tuple[float, int]) -> tuple[float, float]:
    return MARGIN + place[0] * (WIDTH + GAP_X), MARGIN + place[1] * (HEIGHT + GAP_Y)


def _edges(nodes: list[Box], places: list[tuple[float, int]]) -> Iterator[str]:
    for n in nodes:
        x1, y1 = _corner(places[n.index])
        for r in n.reads:
            x0, y0 = _corner(places[r])
            a, b = (x0 + WIDTH / 2, y0 + HEIGHT), (x1 + WIDTH / 2, y1)
            bend = (b[1] - a[1]) / 2
            yield (
                f'<path d="M{a[0]:.0f},{a[1]:.0f} C{a[0]:.0f},{a[1] + bend:.0f} {b[0]:.0f},{b[1] - bend:.0f} '
                f'{b[0]:.0f},{b[1]:.0f}"/>'
            )


def _boxes(nodes: list[Box], places: list[tuple[float, int]]) -> Iterator[str]:
    for n in nodes:
        x, y = _corner(places[n.index])
        head, _, _ = n.note.partition("\n")
        small = head if n.kind in ("input", "constant", "output") else head.partition(": ")[2].partition(" = ")[0]
        yield (
            f'<g><title>{html.escape(n.note)}</title><rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" '
            f'rx="5" fill="{COLOURS[n.kind]}" stroke="#666"/><text x="{x + 8:.0f}" y="{y + 14:.0f}">'
            f'{html.escape(_cut(n.label, 26))}</text><text class="s" x="{x + 8:.0f}" y="{y + 27:.0f}">'
            f"{html.escape(_cut(small, 32))}</text></g>"
        )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
