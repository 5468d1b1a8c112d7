"""A second attempt after a program failed: the function is traced again, in a scope that handles the failure.

Differentiation needs this, because some derivative rules find out only from numbers that they do not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple


class Fallback(NamedTuple):
    """A kind of failure that another trace of the function avoids.

    Attributes:
        applies: ``applies(error)`` returns whether the error is of this kind.
        scope: ``scope(error)`` returns the scope in which to trace the function again.
    """

    applies: Callable[[BaseException], bool]
    scope: Callable[[BaseException], AbstractContextManager[Any]]


FALLBACKS: Final[list[Fallback]] = []
"""The recourses of every compiled function."""


def fallback_of(error: BaseException) -> Fallback | None:
    """The recourse that applies to an error, or None."""
    return next((r for r in FALLBACKS if r.applies(error)), None)
