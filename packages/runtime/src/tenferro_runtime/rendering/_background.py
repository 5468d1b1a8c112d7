"""One background thread for work that nobody waits for, such as compiling kernels."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

Job = Callable[[], object]

BOUND: Final = 1024
"""Jobs that wait; the oldest of more are dropped, for they are wanted least."""

log = logging.getLogger("tenferro")


class Background:
    """A daemon thread that does one job after the other, started by the first one.

    A job that raises is logged and forgotten. The process ends when the job at hand is done; those that wait are
    dropped. A child of a fork goes on with the jobs of its parent.

    Args:
        name: name of the thread.
        bound: jobs that may wait.

    >>> done, background = [], Background("example")
    >>> background.submit(lambda: done.append(1))
    >>> background.drain()
    >>> done
    [1]
    """

    def __init__(self, name: str, bound: int = BOUND) -> None:
        self.name, self.bound = name, bound
        self._jobs: deque[Job] = deque()
        self._closed = False
        self._reset()
        atexit.register(self._close)
        if hasattr(os, "register_at_fork"):
            # The fork waits for the job at hand, which may hold locks of a compiler.
            os.register_at_fork(
                before=lambda: self._busy.acquire(),
                after_in_parent=lambda: self._busy.release(),
                after_in_child=self._reset,
            )

    def _reset(self) -> None:
        self._thread: threading.Thread | None = None
        self._wake = threading.Condition(threading.Lock())
        self._busy = threading.Lock()

    def submit(self, job: Job) -> None:
        """Have `job` done some time; never where no thread can be started any more."""
        with self._wake:
            if self._closed:
                return
            self._jobs.append(job)
            if len(self._jobs) > self.bound:
                self._jobs.popleft()
            if self._thread is None:
                thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the interpreter is about to end, or the system has no threads
                    self._jobs.clear()
                    return
                self._thread = thread
            self._wake.notify()

    def drain(self) -> None:
        """Do the jobs that wait in the calling thread, and wait for the one at hand."""
        while True:
            with self._busy:
                job = self._next()
                if job is None:
                    return
                _do(job)

    def _next(self) -> Job | None:
        with self._wake:
            return self._jobs.popleft() if self._jobs else None

    def _work(self) -> None:
        while not self._closed:
            with self._wake:
                while not self._jobs and not self._closed:
                    self._wake.wait()
            with self._busy:
                job = None if self._closed else self._next()
                if job is not None:
                    _do(job)

    def _close(self) -> None:
        thread = self._thread
        with self._wake:
            self._closed = True
            self._jobs.clear()
            self._wake.notify_all()
        if thread is not None:
            thread.join(timeout=10)


def _do(job: Job) -> None:
    try:
        job()
    except Exception:
        log.exception("work in the background failed; what it was for goes on without it")


COMPILING: Final = Background("tenferro compiling")
"""Where kernels of programs are compiled."""
