"""Where values come from: the user's line on which a tensor entered a place on purpose.

Lines are kept for what is made, moved or sent to a device explicitly (creation, `to_device`, `with_compute_device`),
in a table beside the tensors. Results of operations have none, since asking on every operation costs too much;
``TENFERRO_TRACE=1`` in the environment keeps them, too, and makes every operation take the long way.
"""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any, Final
from weakref import ref

VARIABLE: Final = "TENFERRO_TRACE"

EVERYWHERE: Final = os.environ.get(VARIABLE, "0") not in ("", "0")
"""Whether the lines of results are kept, too."""

OURS: Final = ("tenferro_", "numpy.")
"""Modules whose lines are nobody's: what calls them is meant."""


class _Origin(ref[Any]):
    """A weak reference to a tensor, with its key in the table and the line as code and number."""

    __slots__ = ("code", "key", "line")
    key: int
    code: CodeType
    line: int


_table: dict[int, _Origin] = {}
"""By identity: a tensor has no hash. An entry goes with its tensor, before the identity can be that of another."""


def _drop(origin: _Origin) -> None:
    if _table.get(origin.key, origin) is origin:
        _table.pop(origin.key, None)


def user_frame(depth: int = 1) -> Any:
    """The innermost frame outside of tenferro, ``None`` where there is none."""
    frame: Any = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(OURS):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """File and line of the user's code that is running, empty where there is none."""
    frame = user_frame(2)
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def noted(x: Any) -> Any:
    """`x`, its concrete value remembered as made by the running line of user code; traced values know theirs."""
    inside = x
    while inside.level:
        inside = getattr(inside, "value", None)
        if inside is None:
            return x
    frame = user_frame(2)
    if frame is not None:
        origin = _Origin(inside, _drop)
        origin.key, origin.code, origin.line = id(inside), frame.f_code, frame.f_lineno
        _table[origin.key] = origin
    return x


def line_of(x: Any) -> str:
    """The line that a concrete tensor was noted with, ``file.py:12``; empty where it is unknown."""
    origin = _table.get(id(x))
    return f"{origin.code.co_filename}:{origin.line}" if origin is not None and origin() is x else ""


def told(line: str) -> str:
    """A line as a clause about an operand."""
    return f"made at {line}" if line else f"made by an operation ({VARIABLE}=1 tells its line)"
