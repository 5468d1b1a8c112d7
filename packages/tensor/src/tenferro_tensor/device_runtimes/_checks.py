"""Checks of results that a device is still computing, at once or together at the end of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from operator import and_
from typing import Any, Final

MAX_PENDING: Final = 256
"""Checks that are gathered before they are tested, so that a long loop does not keep a flag of every iteration."""

Error = Callable[[], Exception]


class DeferredChecks:
    """Checks gathered during a program; testing them together waits for the device once.

    Methods take:
        flag: a boolean of the device, of shape ``()``.
        error: makes the exception for a false flag, when it is tested.

    Attributes:
        note: names what checks added from now on belong to, for their exceptions.
    """

    def __init__(self) -> None:
        self.note: Callable[[], str] | None = None
        self._pending: list[tuple[Any, Error, Callable[[], str] | None]] = []

    def add(self, flag: Any, error: Error) -> None:
        """Add a check."""
        self._pending.append((flag, error, self.note))
        if len(self._pending) >= MAX_PENDING:
            self.settle()

    def settle(self) -> None:
        """Test all checks so far.

        Raises:
            Exception: that of the first false flag.
        """
        pending, self._pending = self._pending, []
        if not pending or bool(reduce(and_, [flag for flag, _, _ in pending])):
            return
        for flag, error, note in pending:
            if not bool(flag):
                found = error()
                if note is not None:
                    found.add_note(note())
                raise found


_current: ContextVar[DeferredChecks | None] = ContextVar("deferred_checks", default=None)


def current_checks() -> DeferredChecks | None:
    """The checks that are being gathered in this context, if any.

    Returns:
        The checks, or None if each check is tested at once.

    >>> current_checks() is None
    True
    """
    return _current.get()


@contextmanager
def deferred_checks() -> Iterator[DeferredChecks]:
    """Gather the checks of kernels inside, and test them at the end.

    Kernels of decompositions test their results with `check`, for which the host must wait for the device. A program
    of several of them waits once.

    Returns:
        A context manager that yields the checks.

    Raises:
        Exception: that of the first failed check, at the end.

    >>> import numpy as np
    >>> with deferred_checks() as checks:
    ...     check(np.array(True), lambda: ValueError("the first"))
    ...     checks.settle()
    """
    gathered = DeferredChecks()
    token = _current.set(gathered)
    try:
        yield gathered
        gathered.settle()
    finally:
        _current.reset(token)


def check(flag: Any, error: Error) -> None:
    """Raise unless a flag of the device is true: now, or at the end of the enclosing `deferred_checks`.

    Args:
        flag: a boolean of the device, of shape ``()``.
        error: makes the exception.

    Raises:
        Exception: the one that `error` returns.

    >>> import numpy as np
    >>> check(np.array(False), lambda: ValueError("matrix 3 is singular"))
    Traceback (most recent call last):
    ValueError: matrix 3 is singular
    """
    gathered = _current.get()
    if gathered is not None:
        gathered.add(flag, error)
    elif not bool(flag):
        raise error()
