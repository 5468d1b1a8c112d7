"""Locks and other state that must work in a forked child, where only the forking thread exists.

Three laws make every function of the library work in a child, whatever other threads were doing at the fork:

- `new_lock` creates every lock: it is free in the child unless the forking thread itself holds it. It is re-entrant,
  because a finalizer, a signal handler or a callback may run inside the critical section.
- Guarded state is consistent after every statement: the child continues from wherever a vanished thread stopped.
- A library whose locks and state cannot be repaired from here (LLVM) is idle when the process forks: `idle_at_fork`. So
  are imports, because Python locks each module while its body runs: `importing`.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakSet

__all__ = ["Forked", "Lock", "cached_property", "idle_at_fork", "importing", "mended_after_fork", "new_lock"]


def __dir__() -> list[str]:
    return __all__.copy()


T = TypeVar("T")


class Forked(Protocol):
    """An object that must be repaired in a forked child."""

    def forked(self) -> None:
        """Called in the child, which has one thread."""


Lock = Any
"""A lock created by `new_lock`; the class has no public name."""

_locks: Final[WeakSet[Lock]] = WeakSet()
_alive: Final[WeakSet[Forked]] = WeakSet()
_idle: Final[list[Callable[[], AbstractContextManager[object]]]] = []
_held: Final[dict[int, list[ExitStack]]] = {}
"""Contexts that forking threads hold, by thread; several threads may fork at the same time."""
_importers: Final[list[int]] = []
"""Threads inside `importing`, once for each nesting level."""

IMPORT_WAIT_SECONDS: Final = 10.0
"""Longest time in seconds that a fork waits for imports of other threads, which may wait for the forking thread."""


def new_lock() -> Lock:
    """Create a re-entrant lock that no vanished thread holds in a forked child.

    Returns:
        The lock, a context manager.

    >>> with new_lock() as got:
    ...     got
    True
    """
    made = threading.RLock()
    _locks.add(made)
    return made


class cached_property(functools.cached_property[T]):
    """`functools.cached_property` whose lock, which it has up to Python 3.11, is free in a forked child.

    Args:
        function: computes the value from the instance.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if hasattr(self, "lock"):
            self.lock: Lock = new_lock()


def mended_after_fork(thing: Forked) -> None:
    """Call `thing.forked` in every forked child of this process, as long as the object lives.

    Args:
        thing: the object; it is referenced weakly.

    >>> class Pid:
    ...     def forked(self):
    ...         self.value = os.getpid()
    >>> mended_after_fork(Pid())
    """
    _alive.add(thing)


def idle_at_fork(hold: Callable[[], AbstractContextManager[object]]) -> None:
    """Enter ``hold()`` before every fork of this process, and leave it after the fork, in parent and child.

    Args:
        hold: returns a context manager. Entering it must wait only for threads that wait for nothing themselves.

    >>> from contextlib import nullcontext
    >>> idle_at_fork(nullcontext)
    """
    _idle.append(hold)


@contextmanager
def importing() -> Iterator[None]:
    """Mark imports on first use, for which a fork waits.

    Returns:
        A context manager; several threads may be inside.

    >>> with importing():
    ...     import json
    """
    me = threading.get_ident()
    _importers.append(me)
    try:
        yield
    finally:
        _importers.remove(me)


def _await_imports() -> None:
    me, end = threading.get_ident(), time.monotonic() + IMPORT_WAIT_SECONDS
    while any(other != me for other in tuple(_importers)) and time.monotonic() < end:
        time.sleep(0.0005)


def _before() -> None:
    stack = ExitStack()
    # Stored before anything is entered, so that an interrupt leaves nothing held.
    _held.setdefault(threading.get_ident(), []).append(stack)
    entered = 0
    while True:
        for hold in _idle[entered:]:
            stack.enter_context(hold())
            entered += 1
        _await_imports()
        if entered == len(_idle):  # no module that was imported meanwhile has added one
            return


def _after() -> None:
    me = threading.get_ident()
    stacks = _held.get(me)
    if stacks:
        stacks.pop().close()
        if not stacks:
            del _held[me]


def _mend() -> None:
    _after()
    me = threading.get_ident()
    _held.clear()
    _importers[:] = [other for other in _importers if other == me]
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()
    for thing in list(_alive):
        thing.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_mend)
