"""Python text that this library writes becomes a function here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def defined(name: str, lines: Sequence[str], space: dict[str, Any], title: str) -> Callable[..., Any]:
    """The function of the given name that lines of text define.

    Args:
        name: of the function.
        lines: its text, which names nothing but its own variables and what `space` holds.
        space: globals of the function.
        title: what the text is, as tracebacks show it.
    """
    exec(compile("\n".join(lines), f"<tenferro {title}>", "exec"), space)
    function: Callable[..., Any] = space[name]
    return function
