"""The thread team: workers that run machine code beside the calling thread, without the interpreter's lock.

`team.h` has its laws and its interface for C; machine code that is generated later finds the same function as the
symbol ``tenferro_parallel_for``, and Python as `Team.run`. Other Python threads inside of such calls count as cores
that are taken. Workers are made when a job first needs them; they end before a fork and at exit.
"""

import atexit
import os
import time
from functools import cache
from typing import Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.threads._threads import limit, usable_cores
from tenferro_tensor_core.forks import new_lock

VARIABLE: Final = "OMP_NUM_THREADS"
"""The variable by which programs bound the threads of numerical libraries."""

PATIENCE: Final = 2.0
"""Seconds to wait for the end of the workers."""


class Team:
    """Workers, and the one job that they may be at; made by `team`.

    Attributes:
        run: ``run(piece, context, count, most)`` calls the machine code at the address `piece` with the address
            `context` and every number below `count`, on at most `most` threads.
        symbols: what machine code that calls the team declares: ``tenferro_parallel_for``, and ``tenferro_allowed``,
            the number of threads for the calling Python thread, asked with the interpreter's lock held.
    """

    def __init__(self) -> None:
        self.run = compiled.team_run
        self.symbols = {name: compiled.ADDRESSES[name] for name in ("tenferro_parallel_for", "tenferro_allowed")}
        self._get, self._set = compiled.team_get, compiled.team_set
        self._stopping = new_lock()
        if not self._get("cores"):  # a finalizer that computes meanwhile makes another team of the same state
            self._set("cores", usable_cores())
            self._set("allowed", chosen())
            atexit.register(self.stop)
            os.register_at_fork(before=self.stop, after_in_parent=self._resume, after_in_child=self._renew)

    @property
    def threads(self) -> int:
        """Threads that a job of the calling Python thread may use, itself included."""
        return limit() or self._get("allowed")

    def stats(self) -> dict[str, int]:
        """``cores``, ``threads`` of a job outside of any scope, ``workers`` that exist, ``jobs`` that they joined."""
        names = {"cores": "cores", "threads": "allowed", "workers": "running", "jobs": "jobs"}
        return {name: self._get(counter) for name, counter in names.items()}

    def stop(self) -> None:
        """End the workers; jobs run where they are called until the team goes on."""
        with self._stopping:
            self._set("stop", 1)
            compiled.team_wake_all()
            until = time.monotonic() + PATIENCE
            while self._get("running") and time.monotonic() < until:
                time.sleep(0.0002)

    def _resume(self) -> None:
        self._set("started", self._get("running"))  # more than none where a worker outlasted the patience
        self._set("stop", 0)

    def _renew(self) -> None:
        """In the child of a fork, which has one thread, whatever the others were at."""
        for name in ("busy", "callers", "gate", "sleeping", "running", "rest"):
            self._set(name, 0)
        compiled.team_prepare()
        self._resume()


def chosen() -> int:
    """Threads that the program has chosen for numerical libraries: `VARIABLE`, else the usable cores."""
    given = os.environ.get(VARIABLE, "").partition(",")[0].strip()
    return min(int(given), usable_cores()) if given.isdecimal() and int(given) else usable_cores()


_making = new_lock()


@cache
def _made() -> Team | None:
    return None if compiled is None else Team()


def team() -> Team | None:
    """The team of the process, or None in a pure wheel; makes no thread.

    >>> have = team()
    >>> have is None or have.threads >= 1
    True
    """
    with _making:  # a cached function may run twice at once
        return _made()
