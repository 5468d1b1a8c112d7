"""The thread team: workers that run machine code beside the calling thread, without the interpreter's lock.

`team.h` states its laws and its C interface; generated machine code finds the same function as the symbol
``tenferro_parallel_for``, and Python as `Team.run`. Other Python threads inside such calls count as occupied cores.
Workers start when a job first needs them; they end before a fork and at exit.
"""

import atexit
import os
import time
from functools import cache
from typing import Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.threads._threads import limit, usable_cores
from tenferro_tensor_core.forks import new_lock

THREADS_VARIABLE: Final = "OMP_NUM_THREADS"
"""Environment variable that limits the threads of numerical libraries."""

STOP_TIMEOUT_SECONDS: Final = 2.0
"""Seconds to wait for workers to end."""


class Team:
    """Workers and their current job; created by `team`.

    Attributes:
        run: ``run(piece, context, count, most)`` calls the machine code at address `piece` with the address
            `context` and every number below `count`, on at most `most` threads.
        symbols: symbols declared by machine code that calls the team: ``tenferro_parallel_for``, and
            ``tenferro_allowed``, the number of threads for the calling Python thread, which requires the interpreter's
            lock.
    """

    def __init__(self) -> None:
        self.run = compiled.team_run
        self.symbols = {name: compiled.ADDRESSES[name] for name in ("tenferro_parallel_for", "tenferro_allowed")}
        self._get, self._set = compiled.team_get, compiled.team_set
        self._stopping = new_lock()
        if not self._get("cores"):  # a finalizer that computes meanwhile creates another team with the same state
            self._set("cores", usable_cores())
            self._set("allowed", chosen())
            atexit.register(self.stop)
            os.register_at_fork(before=self.stop, after_in_parent=self._resume, after_in_child=self._renew)

    @property
    def threads(self) -> int:
        """Maximum number of threads for a job of the calling Python thread, itself included."""
        return limit() or self._get("allowed")

    def stats(self) -> dict[str, int]:
        """``cores``, ``threads`` of a job outside any scope, existing ``workers``, ``jobs`` that they joined."""
        names = {"cores": "cores", "threads": "allowed", "workers": "running", "jobs": "jobs"}
        return {name: self._get(counter) for name, counter in names.items()}

    def stop(self) -> None:
        """End the workers; jobs run in their callers until the team resumes."""
        with self._stopping:
            self._set("stop", 1)
            compiled.team_wake_all()
            until = time.monotonic() + STOP_TIMEOUT_SECONDS
            while self._get("running") and time.monotonic() < until:
                time.sleep(0.0002)

    def _resume(self) -> None:
        self._set("started", self._get("running"))  # not zero if a worker outlived the timeout
        self._set("stop", 0)

    def _renew(self) -> None:
        """Reset in the child of a fork, which has one thread."""
        for name in ("busy", "callers", "gate", "sleeping", "running", "rest"):
            self._set(name, 0)
        compiled.team_prepare()
        self._resume()


def chosen() -> int:
    """Number of threads chosen for numerical libraries by `THREADS_VARIABLE`, otherwise the usable cores."""
    given = os.environ.get(THREADS_VARIABLE, "").partition(",")[0].strip()
    return min(int(given), usable_cores()) if given.isdecimal() and int(given) else usable_cores()


_making = new_lock()


@cache
def _made() -> Team | None:
    return None if compiled is None else Team()


def team() -> Team | None:
    """The team of the process, or None in a pure wheel; starts no thread.

    >>> have = team()
    >>> have is None or have.threads >= 1
    True
    """
    with _making:  # a cached function may run twice at once
        return _made()
