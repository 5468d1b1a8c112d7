"""Source lines of the user's code: the innermost frame outside tenferro."""

from __future__ import annotations

from types import CodeType
from typing import Final

from tenferro_tensor.origins import OURS, user_frame

Source = tuple[CodeType, int] | str | None
"""A code object and a line in it, or text: in programs read from a file, and for lines with a remark."""

_LANE_BY_LANE: Final = ", lane by lane"


def user_line() -> Source:
    """The line of user code that is running.

    Returns:
        The code and the line, unformatted, because formatting costs more than the lookup.
    """
    frame = user_frame(2)  # the caller is part of tenferro
    return None if frame is None else (frame.f_code, frame.f_lineno)


def lane_by_lane(source: Source) -> Source:
    """The source of a loop over the lanes of a batch: the line, with a remark."""
    line = where(source)
    return line if line.endswith(_LANE_BY_LANE) else f"{line}{_LANE_BY_LANE}"


def where(source: Source) -> str:
    """A source as text, ``file.py:12``.

    Args:
        source: the source.

    Returns:
        The text; empty if the source is unknown.
    """
    if source is None or isinstance(source, str):
        return source or ""
    code, line = source
    return f"{code.co_filename}:{line}"


def here() -> str:
    """The running line of user code as a clause for error messages.

    Returns:
        The clause, such as `` at file.py:12``; may be empty.
    """
    place = where(user_line())
    return f" at {place}" if place else ""


def tell_line(error: BaseException, opened: Source) -> None:
    """Add the user's line to an error of a traced function, unless the text names it already."""
    trace, line = error.__traceback__, ""
    while trace is not None:
        frame = trace.tb_frame
        if not frame.f_globals.get("__name__", "").startswith(OURS):
            line = f"{frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    told = "\n".join((str(error), *getattr(error, "__notes__", ())))
    if line and line not in told:
        error.add_note(f"at {line}" + (f", traced by the call at {where(opened)}" if opened else ""))
