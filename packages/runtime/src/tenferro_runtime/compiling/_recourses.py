"""A second attempt after a program failed: the function is traced again, in a scope that handles the failure.

Differentiation needs this, because some derivative rules find out only from numbers that they do not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple


class Recourse(NamedTuple):
    """A kind of failure that another trace of the function avoids.

    Attributes:
        applies: ``applies(error)`` returns whether the error is of this kind.
        scope: ``scope(error)`` returns the scope in which to trace the function again.
    """

    applies: Callable[[BaseException], bool]
    scope: Callable[[BaseException], AbstractContextManager[Any]]


RECOURSES: Final[list[Recourse]] = []
"""The recourses of every compiled function."""


def recourse_of(error: BaseException) -> Recourse | None:
    """The recourse that applies to an error, or None."""
    return next((r for r in RECOURSES if r.applies(error)), None)
