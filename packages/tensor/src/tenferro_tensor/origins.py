"""Source attribution: the user's line that made or moved a tensor.

A table beside the tensors records the lines of explicit creation, `to_device` and `with_compute_device`. Lines of
operations are not recorded by default, since finding them costs too much; ``TENFERRO_TRACE=1`` in the environment
records them as well and makes every operation take the slow path.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any, Final, TypeVar
from weakref import ref

T = TypeVar("T", bound=Any)

__all__ = ["EVERYWHERE", "OURS", "line_of", "made_at", "noted", "user_frame", "user_line"]


def __dir__() -> list[str]:
    return __all__.copy()


VARIABLE: Final = "TENFERRO_TRACE"

EVERYWHERE: Final = os.environ.get(VARIABLE, "0") not in ("", "0")
"""Whether the lines of operations are recorded as well."""

OURS: Final = ("tenferro_", "numpy.")
"""Prefixes of modules that are not user code; their calls are attributed to the line of the caller."""

PRUNE_MIN_ENTRIES: Final = 4096
"""The entries of deleted tensors are dropped when the table has more entries than this."""


class _Table:
    """Source lines by the id of tensors, which are unhashable; an entry is valid while its weak reference yields that
    tensor.
    """

    __slots__ = ("entries", "most")

    def __init__(self) -> None:
        self.entries: dict[int, tuple[ref[Any], CodeType, int]] = {}
        self.most = PRUNE_MIN_ENTRIES

    def tidy(self) -> None:
        """Drop the entries of deleted tensors; entries that other threads add meanwhile may be lost."""
        entries = self.entries.copy()  # atomic, unlike iterating over the items
        self.entries = {key: entry for key, entry in entries.items() if entry[0]() is not None}
        self.most = max(PRUNE_MIN_ENTRIES, 2 * len(self.entries))


_table: Final = _Table()


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame outside tenferro.

    Args:
        depth: number of frames to skip.

    Returns:
        The frame, or None.
    """
    frame: Any = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(OURS):
        frame = frame.f_back
    return frame  # type: ignore[no-any-return]


def user_line() -> str:
    """File and line of the running user code.

    Returns:
        The text; empty if there is none.
    """
    frame = user_frame(2)
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def noted(x: T) -> T:
    """Attribute the concrete value of `x` to the running line of user code; traced values record their own.

    Args:
        x: value.

    Returns:
        `x`.
    """
    inside: Any = x
    while inside.level:
        inside = getattr(inside, "value", None)
        if inside is None:
            return x
    frame = user_frame(2)
    if frame is not None:
        entries = _table.entries
        entries[id(inside)] = ref(inside), frame.f_code, frame.f_lasti  # `line_of` finds the line, which takes longer
        if len(entries) > _table.most:
            _table.tidy()
    return x


def aliased(x: T) -> T:
    """Another object for the same value and source line: assigning to one does not affect the other.

    Args:
        x: value.

    Returns:
        The alias.
    """
    z = x._alias()
    entries = _table.entries
    if id(x) in entries:
        made, code, at = entries[id(x)]
        if made() is x:
            entries[id(z)] = ref(z), code, at
    return z  # type: ignore[no-any-return]


def line_of(x: Any) -> str:
    """The source line attributed to a concrete tensor, ``file.py:12``.

    Args:
        x: tensor.

    Returns:
        The text; empty if it is unknown.
    """
    entry = _table.entries.get(id(x))
    if entry is None or entry[0]() is not x:
        return ""
    _, code, at = entry
    return f"{code.co_filename}:{next((n for start, end, n in code.co_lines() if start <= at < end), '?')}"


def made_at(line: str) -> str:
    """A clause for messages about where an operand was created.

    Args:
        line: source line, or an empty text.

    Returns:
        The clause.
    """
    return f"made at {line}" if line else f"made by an operation ({VARIABLE}=1 tells its line)"
