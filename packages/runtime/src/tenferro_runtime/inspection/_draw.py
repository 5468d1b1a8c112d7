"""`draw`: a program as a graph, in the DOT language, as SVG, as a self-contained HTML page, or in a notebook."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Final

from tenferro_runtime.inspection._explain import explain
from tenferro_runtime.inspection._graph import graph
from tenferro_runtime.inspection._picture import FILLS, cut_lines, legend, opened, program_picture, title
from tenferro_runtime.ir._program import Program
from tenferro_tensor.markup import Markup, card, details, element, page, preformatted, standalone, table
from tenferro_tensor_core import ArgumentError

FORMATS: Final = ("dot", "svg", "html")

MAX_PROGRAMS: Final = 4
"""Number of latest programs of a compiled function that are shown."""

MAX_REASONS: Final = 12
"""Number of latest reasons of traces that are shown."""


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
    text = standalone(program_picture(program)) if format == "svg" else {"dot": _dot, "html": _html}[format](program)
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


def _html(program: Program) -> str:
    drawn = card(legend(), opened(program), explain(program)._table().html())
    return page(title(program), element("h1", title(program)), drawn)


def program_card(program: Program) -> str:
    """Markup of a program: its drawing, and its text to open.

    Args:
        program: the program.

    Returns:
        HTML.
    """
    return card(element("b", title(program)), opened(program), _text_of(program))


def function_card(function: Any, programs: list[Program]) -> str:
    """Markup of a compiled function: the number of traces and their reasons, and its programs to open.

    Args:
        function: the compiled function.
        programs: its programs.

    Returns:
        HTML.
    """
    info = function.cache_info()
    head = f"compiled function {function.__qualname__}"
    counts = f" traced {info.traces} times, {info.size} programs kept" if info.traces else " not called so far"
    reasons = [*enumerate(info.reasons, info.traces - len(info.reasons) + 1)]
    why = table(("trace", "because of"), reasons[-MAX_REASONS:], (0,)) if reasons else ""
    shown = [details(title(p), opened(p), _text_of(p), open_=len(programs) == 1) for p in programs[-MAX_PROGRAMS:]]
    return card(element("b", head), element("span", counts), why, *shown)


def _text_of(program: Program) -> Markup:
    return details("as text", preformatted(cut_lines(str(program))))
