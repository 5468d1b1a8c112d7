"""The thread policy: how many threads BLAS may use for an operation without oversubscribing the cores.

The thread count of a BLAS is global to the process. It is therefore set only around this library's own calls, and
restored to the program's choice when the last of them is done:

- small work gets one thread, larger work one more for each `PER_THREAD` multiply-adds, up to the program's choice
  (``OPENBLAS_NUM_THREADS``, threadpoolctl) or the limit of ``with threads(n)``;
- while several Python threads are inside such calls, each call gets one thread, because they already run in parallel;
- a call within a call of the same Python thread keeps the count of the outer one.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.threads import _blas
from tenferro_cpu.native.threads._arbiter import make as native_arbiter
from tenferro_tensor import Spec
from tenferro_tensor_core import ArgumentError, DimLike, dim_max, dim_min, floordiv
from tenferro_tensor_core.forks import new_lock

PER_THREAD: Final = 1 << 23
"""Multiply-adds that pay for one more thread: about 0.3 ms, several times the cost of waking it."""

limit_variable: ContextVar[int]
if compiled is None:
    limit_variable = ContextVar("tenferro_cpu_threads", default=0)
else:
    limit_variable = compiled.LIMIT
"""Limit of the innermost scope of `threads`, 0 outside any; machine code reads it too."""


@contextlib.contextmanager
def threads(n: int) -> Iterator[None]:
    """Limit the CPU threads of the calling Python thread within a ``with`` block.

    Small work always uses one thread. Python threads started inside have no limit unless they open a scope themselves;
    work that several of them do at once runs on one thread each.

    Args:
        n: maximum number of threads; numbers above the usable cores mean all of them.

    Returns:
        A context manager.

    Raises:
        ArgumentError: `n` is not a positive integer.

    >>> from tenferro_tensor import catalog, tensor
    >>> with threads(1):
    ...     catalog.add(tensor([1.0]), tensor([2.0])).tolist()
    [3.0]
    """
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ArgumentError(f"threads({n!r}): the number of threads is a positive integer; pass 1 or more", threads=n)
    token = limit_variable.set(min(n, usable_cores()))
    arbiter().scopes(1)
    try:
        yield
    finally:
        arbiter().scopes(-1)
        limit_variable.reset(token)


def limit() -> int | None:
    """Limit of the innermost ``with threads(n)``; None outside any.

    >>> with threads(1):
    ...     limit()
    1
    """
    return limit_variable.get() or None


def usable_cores() -> int:
    """Number of cores that this process may run on; fewer than the machine has if it is pinned."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def wanted(work: DimLike) -> DimLike:
    """Number of threads that `work` multiply-adds pay for.

    >>> wanted(100**3), wanted(400**3)
    (1, 7)
    """
    if isinstance(work, int):
        return max(1, work // PER_THREAD)
    return dim_max(1, floordiv(work, PER_THREAD))


def work_of(spec: Spec) -> DimLike:
    """Multiply-adds of a decomposition of one matrix of a stack, up to a factor.

    Stacks are processed matrix by matrix, so their length pays for no thread.

    >>> work_of(Spec((7, 100, 10), "float64")), work_of(Spec((7,), "float64"))
    (10000, 0)
    """
    if spec.ndim < 2:
        return 0
    rows, columns = spec.shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        return rows * columns * min(rows, columns)
    return rows * columns * dim_min(rows, columns)


class Arbiter:
    """Sets the thread count of every loaded BLAS around calls; nothing else sets it.

    Args:
        libraries: finds the libraries.
    """

    def __init__(self, libraries: Callable[[], tuple[_blas.Library, ...]] = _blas.libraries) -> None:
        self._find = libraries
        self._lock = new_lock()
        self._inside = 0
        self._owner = 0  # the Python thread inside; 0 if several are, or have been since the first entered
        self._libraries = libraries()
        self._changed: dict[_blas.Library, int] = {}

    def refresh(self) -> None:
        """Search for libraries again."""
        with self._lock:
            self._libraries = self._find()

    def scopes(self, change: int) -> None:
        """Note that a scope of `threads` opens or closes."""

    def after_fork(self) -> None:
        """Reset in the child of a fork: calls of the parent's other threads never end here."""
        self._inside = 0
        self._give_back()

    def enter(self, most: int, allowed: int) -> None:
        """Begin a call that pays for `most` threads; `allowed` is the limit of the scope, 0 outside any."""
        with self._lock:
            self._inside += 1
            me = threading.get_ident()
            if self._inside == 1:
                self._owner = me
                for library in self._libraries:
                    self._set(library, min(most, allowed or library.get_threads()))
            elif self._owner not in (me, 0):
                self._owner = 0
                for library in self._libraries:
                    self._set(library, 1)

    def leave(self) -> None:
        """End a call."""
        with self._lock:
            self._inside -= 1
            if not self._inside and self._changed:
                self._give_back()

    def _set(self, library: _blas.Library, count: int) -> None:
        before = library.get_threads()
        if count != before:
            self._changed.setdefault(library, before)
            library.set_threads(count)

    def _give_back(self) -> None:
        for library, count in self._changed.items():
            library.set_threads(count)
        self._changed.clear()


_arbiter: Any = None
_making = new_lock()
_complete = False
"""Whether the arbiter has searched again since SciPy loaded its own BLAS: once, as a search takes milliseconds."""


def arbiter() -> Any:
    """The arbiter of the process: in machine code if available (twenty times as fast), otherwise in Python."""
    global _arbiter
    if _arbiter is None:
        with _making:
            if _arbiter is None:
                made = native_arbiter() or Arbiter()
                if hasattr(os, "register_at_fork"):
                    os.register_at_fork(after_in_child=made.after_fork)
                _arbiter = made
    return _arbiter


def bounded(kernel: Callable[..., Any], work: DimLike) -> Callable[..., Any]:
    """Wrap `kernel` to run with as many BLAS threads as `work` multiply-adds pay for.

    >>> bounded(lambda a, b: a + b, 8**3)(1, 2)
    3
    """
    return partial(_bounded_by_first(kernel), wanted(work))


def bounded_open(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `kernel` to run with as many BLAS threads as its last argument says; `kernel` does not receive it.

    >>> bounded_open(lambda a, b: a + b)(1, 2, 1)
    3
    """
    run = _bounded_by_first(kernel)
    return lambda *raws: run(raws[-1], *raws[:-1])


def _bounded_by_first(kernel: Callable[..., Any]) -> Callable[..., Any]:
    chief, modules = arbiter(), sys.modules
    enter, leave, allowed = chief.enter, chief.leave, limit_variable.get

    def run_bounded(most: int, *raws: Any) -> Any:
        global _complete
        if not _complete and "scipy.linalg._fblas" in modules:
            _complete = True
            chief.refresh()
        n = allowed()
        try:
            enter(most, n)  # inside: an interrupt that comes during the call is raised after it
            return kernel(*raws)
        finally:
            leave()

    return run_bounded
