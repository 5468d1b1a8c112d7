"""Objects that are put right in the child of a fork, where threads that held their locks do not exist."""

from __future__ import annotations

import os
from typing import Final, Protocol
from weakref import WeakSet


class Forked(Protocol):
    """What has something to put right."""

    def forked(self) -> None:
        """Called in the child, which has one thread."""


_alive: Final[WeakSet[Forked]] = WeakSet()


def mended_after_fork(thing: Forked) -> None:
    """Have `forked` called in the children of this process, as long as the object lives."""
    _alive.add(thing)


def _mend() -> None:
    for thing in list(_alive):
        thing.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mend)
