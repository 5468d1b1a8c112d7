"""The only place where generated Python text becomes a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def defined(name: str, lines: Sequence[str], space: dict[str, Any], title: str) -> Callable[..., Any]:
    """Compile lines of text and return the function that they define.

    Args:
        name: name of the function.
        lines: source text; its names are local variables and the globals in `space`.
        space: globals of the function.
        title: file name in tracebacks.
    """
    exec(compile("\n".join(lines), f"<tenferro {title}>", "exec"), space)
    function: Callable[..., Any] = space[name]
    return function
