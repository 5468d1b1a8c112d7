"""A second attempt after a program failed: the function is traced once more, in a scope that handles the failure.

Differentiation needs this: whether a derivative is determined by what a rule sees, only the numbers tell.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple


class Recourse(NamedTuple):
    """A kind of failure for which there is another program.

    Attributes:
        applies: ``applies(error)`` tells whether the error is of this kind.
        scope: ``scope(error)`` is the scope in which the function is traced to the other program.
    """

    applies: Callable[[BaseException], bool]
    scope: Callable[[BaseException], AbstractContextManager[Any]]


RECOURSES: Final[list[Recourse]] = []
"""Known to every compiled function."""


def recourse_of(error: BaseException) -> Recourse | None:
    """What to do about an error, if anything."""
    return next((r for r in RECOURSES if r.applies(error)), None)
