"""CPU affinity of threads; Linux only."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from tenferro_tensor_core import ArgumentError, UnsupportedError

PINS: Final = hasattr(os, "sched_setaffinity")
"""Whether the system can pin threads."""


def checked(cpus: Iterable[int]) -> frozenset[int]:
    """Validate the cores that the user requests.

    Raises:
        ArgumentError: they are not numbers, there are none, or the process may not run on them.
        UnsupportedError: the system cannot pin threads, or does not allow it to this process.
    """
    try:
        wanted = frozenset(cpus)
    except TypeError:
        raise ArgumentError(
            f"a CPU pool was requested on the cores {cpus!r}; give their numbers, as in {{0, 1}}", cpus=repr(cpus)
        ) from None
    if not wanted or not all(isinstance(c, int) and not isinstance(c, bool) for c in wanted):
        raise ArgumentError(
            f"a CPU pool was requested on the cores {_shown(wanted)}; give their numbers, at least one", cpus=wanted
        )
    if not _may_pin():
        raise UnsupportedError(
            f"a CPU pool was requested on the cores {_shown(wanted)}, but this system pins no threads; "
            "leave cpus=None, and the system chooses",
            cpus=wanted,
        )
    usable = os.sched_getaffinity(0)
    if not wanted <= usable:
        raise ArgumentError(
            f"a CPU pool was requested on the cores {_shown(wanted)}, but this process may use {_shown(usable)}; "
            "choose among these",
            cpus=wanted,
            usable=frozenset(usable),
        )
    return wanted


def usual(index: int, threads: int) -> frozenset[int] | None:
    """The default core of pool `index`, one after the other; None leaves the pool unpinned.

    A pool whose work uses several threads is left to the system: workers of the team, which serve all devices, inherit
    the affinity of the thread that first needs them.

    >>> usual(1, 1) is None or len(usual(1, 1))
    1
    """
    if threads > 1 or not _may_pin():
        return None
    usable = sorted(os.sched_getaffinity(0))
    return frozenset([usable[index % len(usable)]])


def pin(cpus: frozenset[int] | None) -> None:
    """Pin the calling thread; threads that it starts later inherit its affinity.

    If the cores have become unavailable the thread stays unpinned, which costs time and changes no result.
    """
    if cpus is not None:
        with suppress(OSError):
            os.sched_setaffinity(0, cpus)


def _may_pin() -> bool:
    """Whether threads of this process can be pinned; sandboxes may forbid it."""
    if not PINS:
        return False
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))  # changes nothing
    except OSError:
        return False
    return True


def _shown(cpus: Iterable[int]) -> str:
    return "{" + ", ".join(map(str, sorted(cpus, key=str))) + "}"
