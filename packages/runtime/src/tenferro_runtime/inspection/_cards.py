"""HTML of programs and compiled functions for notebooks."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.inspection._picture import cut_lines, opened, title
from tenferro_runtime.ir._program import Program
from tenferro_tensor.markup import card, details, element, preformatted, table

MAX_PROGRAMS: Final = 4
"""Number of latest programs of a compiled function that are shown."""

MAX_REASONS: Final = 12
"""Number of latest reasons of traces that are shown."""


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
    reasons = [(i, reason) for i, reason in enumerate(info.reasons, info.traces - len(info.reasons) + 1)]
    why = table(("trace", "because of"), reasons[-MAX_REASONS:], (0,)) if reasons else ""
    shown = [details(title(p), opened(p), _text_of(p), open_=len(programs) == 1) for p in programs[-MAX_PROGRAMS:]]
    return card(element("b", head), element("span", counts), why, *shown)


def _text_of(program: Program) -> str:
    return details("as text", preformatted(cut_lines(str(program))))
