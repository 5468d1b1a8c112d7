"""Where the user's code stands: the innermost frame outside tenferro."""

from __future__ import annotations

import sys
from types import CodeType

Source = tuple[CodeType, int] | str | None
"""A code object and a line in it, or text in programs that were read from a file."""


def user_line() -> Source:
    """The line of user code that is running; kept as (code, line) because formatting costs more than asking."""
    frame = sys._getframe(2)  # the caller is tenferro's
    while frame.f_globals.get("__name__", "").startswith("tenferro_"):
        back = frame.f_back
        if back is None:
            return None
        frame = back
    return frame.f_code, frame.f_lineno


def where(source: Source) -> str:
    """A source as people read it, ``file.py:12``; empty where it is unknown."""
    if source is None or isinstance(source, str):
        return source or ""
    code, line = source
    return f"{code.co_filename}:{line}"


def here() -> str:
    """The running line of user code as a clause for error messages."""
    place = where(user_line())
    return f" at {place}" if place else ""
