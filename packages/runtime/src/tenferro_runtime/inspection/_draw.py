"""`draw`: a program as a graph, in the DOT language, as SVG, or as a self-contained HTML page."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Final

from tenferro_runtime.inspection._explain import explain
from tenferro_runtime.inspection._graph import graph
from tenferro_runtime.inspection._picture import legend, opened, program_picture, title
from tenferro_runtime.ir._program import Program
from tenferro_tensor.markup import card, element, page, standalone
from tenferro_tensor_core import ArgumentError

FORMATS: Final = ("dot", "svg", "html")

FILLS: Final = {
    "input": "#cfe2f3", "constant": "#e6e6e6", "output": "#d9ead3", "view": "#f7f7f7", "contraction": "#f9cb9c",
    "element-wise": "#fff2cc", "fused": "#fff2cc", "program": "#d9d2e9", "other": "#ffffff",
}  # fmt: skip
"""Opaque colours of boxes for Graphviz, by kind of step."""


def draw(program: Program, path: str | PathLike[str] | None = None, format: str | None = None) -> str:
    """Draw a program as a graph; writes the text to a file if a path is given.

    DOT has every step. A drawing or a page shows the steps that run: fused steps are one box, and in a long program so
    are those of one source line; a page opens such boxes, loops and branches.

    Args:
        program: the program.
        path: the file to write, if any; its suffix determines the default format.
        format: ``"dot"``, ``"svg"``, or ``"html"`` for a page with the graph and the table of `explain`.

    Returns:
        The text.

    Raises:
        ArgumentError: another format.
    """
    if format is None:
        format = Path(path).suffix.removeprefix(".") if path is not None else "dot"
    if format not in FORMATS:
        raise ArgumentError(f"draw writes {', '.join(FORMATS)}, got {format=}; name the file x.dot, x.svg or x.html")
    text = {"dot": _dot, "svg": _svg, "html": _html}[format](program)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _dot(program: Program) -> str:
    lines = ["digraph program {", '  node [shape=box, style="filled,rounded", fontname="sans-serif", fontsize=10];']
    for n in graph(program):
        shown = n.detail if n.kind in ("input", "constant", "output") else ""
        label = _quoted(f"{n.label}\n{shown}" if shown else n.label)
        note = _quoted(n.note or n.detail)
        lines.append(f'  n{n.index} [label={label}, tooltip={note}, fillcolor="{FILLS[n.kind]}"];')
        lines += [f"  n{r} -> n{n.index};" for r in n.reads]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _svg(program: Program) -> str:
    return standalone(program_picture(program))


def _html(program: Program) -> str:
    drawn = card(legend(), opened(program), explain(program)._table().html())
    return page(title(program), element("h1", title(program)), drawn)
