"""The thread team: workers that run machine code beside the calling thread, without the interpreter's lock.

``parallel_for(kernel, context, pieces, most)`` calls ``kernel(context, piece)`` for every piece, in the calling thread
and in workers. It is a function of machine code, symbol ``tenferro_parallel_for``; Python has it as `Team.run`. The
pieces are the caller's: where results depend on how work is cut (sums), they must follow from shapes alone.

- One job runs at a time. A second one, from within the first or from another thread, runs where it was called.
- Other Python threads inside of such calls count as cores that are taken. Where a worker does not get a core, because
  another program has it, the next jobs run where they are called.
- Workers are made when a job first needs them; they wait a moment for the next job, then sleep. They end before a
  fork and at exit.
"""

import atexit
import ctypes
import os
import sys
import time
from functools import cache
from typing import Any, Final

from tenferro_cpu.native.machine._jit import available, engine
from tenferro_cpu.native.python import _capi
from tenferro_cpu.native.python._operand_text import architecture
from tenferro_cpu.native.threads import _team_text as text
from tenferro_cpu.native.threads._threads import limit, limit_variable, usable_cores
from tenferro_tensor_core.forks import new_lock

VARIABLE: Final = "OMP_NUM_THREADS"
"""The variable by which programs bound the threads of numerical libraries."""

PATIENCE: Final = 2.0
"""Seconds that the end of the workers is waited for."""

_SETMASK: Final = {"linux": 2, "darwin": 3}
"""``SIG_SETMASK`` where threads of the C library are used."""

_JOB: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


_STATE: Final = (ctypes.c_uint8 * (text.STATE_BYTES + 64))()
"""What the workers of the process share: one, also where a finalizer computes while the team is made."""
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_STATE))  # threads of the program may outlast the interpreter


class Team:
    """Workers, and the one job that they may be at; made by `team`.

    Attributes:
        symbols: what machine code that calls the team declares: ``tenferro_parallel_for``, and ``tenferro_allowed``,
            the number of threads for the calling Python thread, asked with the interpreter's lock held.
    """

    def __init__(self) -> None:
        threaded = sys.platform in _SETMASK
        at = -(-ctypes.addressof(_STATE) // 64) * 64
        self._state = (ctypes.c_int64 * (text.STATE_BYTES // 8)).from_address(at)
        self._external: dict[str, int] = {
            "tenferro_team": at,
            "tenferro_limit": id(limit_variable),
            "tenferro_context_get": _address(ctypes.pythonapi.PyContextVar_Get),
            "tenferro_long_as_long": _address(ctypes.pythonapi.PyLong_AsLongLongAndOverflow),
            "tenferro_decref": _address(ctypes.pythonapi.Py_DecRef),
        }
        if threaded:
            library = ctypes.CDLL(None)
            self._external |= {f"tenferro_{name}": _address(getattr(library, name)) for name in text.EXTERNAL}
            source = text.text(architecture(engine().host.triple), _SETMASK[sys.platform])
        else:
            source = text.serial_text()
        names = ("parallel_for", "allowed", "prepare", "wake_all")
        parallel_for, allowed, prepare, wake_all = engine().functions(source, names, self._external)
        self.symbols = {"tenferro_parallel_for": parallel_for, "tenferro_allowed": allowed}
        self.run: Any = _JOB(parallel_for)
        self._prepare, self._wake_all = (ctypes.CFUNCTYPE(None)(f) for f in (prepare, wake_all))
        self._stopping = new_lock()
        if not self._get("cores"):  # what shares the state is prepared once
            self._set("cores", usable_cores())
            self._set("allowed", chosen() if threaded else 1)
            self._prepare()
            atexit.register(self.stop)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(before=self.stop, after_in_parent=self._resume, after_in_child=self._renew)

    @property
    def threads(self) -> int:
        """Threads that a job of the calling Python thread may use, itself included."""
        return limit() or self._get("allowed")

    def stats(self) -> dict[str, int]:
        """``cores``, ``threads`` of a job outside of any scope, ``workers`` that exist, ``jobs`` that they joined."""
        return {
            "cores": self._get("cores"),
            "threads": self._get("allowed"),
            "workers": self._get("running"),
            "jobs": self._get("jobs"),
        }

    def stop(self) -> None:
        """End the workers; jobs run where they are called until the team goes on."""
        with self._stopping:
            self._set("stop", 1)
            self._wake_all()
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
        self._prepare()
        self._resume()

    def _get(self, name: str) -> int:
        value: int = self._state[text.WORDS[name]]
        return value

    def _set(self, name: str, value: int) -> None:
        self._state[text.WORDS[name]] = value


def chosen() -> int:
    """Threads that the program has chosen for numerical libraries: `VARIABLE`, else the usable cores."""
    given = os.environ.get(VARIABLE, "").partition(",")[0].strip()
    return min(int(given), usable_cores()) if given.isdecimal() and int(given) else usable_cores()


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_making = new_lock()


@cache
def _made() -> Team | None:
    return Team() if available() and _capi.symbols() is not None else None


def team() -> Team | None:
    """The team of the process, or None where there is no machine code; makes no thread.

    >>> have = team()
    >>> have is None or have.threads >= 1
    True
    """
    with _making:  # a cached function may run twice at once
        return _made()
