"""One background thread for work that no caller waits for, such as compiling kernels."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from tenferro_tensor_core.forks import mended_after_fork, new_lock

Job = Callable[[], object]

MAX_WAITING_JOBS: Final = 1024
"""Largest number of waiting jobs; beyond it, the oldest is dropped."""


class Background:
    """A daemon thread that runs jobs in order; the first job starts it.

    A job that raises is logged and dropped. At exit, the process waits for the running job and drops the waiting ones.
    A forked child continues with its parent's jobs and restarts a running one, so a job must have no effect before it
    completes.

    Args:
        name: name of the thread.
        bound: largest number of waiting jobs.

    >>> done, background = [], Background("example")
    >>> background.submit(lambda: done.append(1))
    >>> background.drain()
    >>> done
    [1]
    """

    def __init__(self, name: str, bound: int = MAX_WAITING_JOBS) -> None:
        self.name, self.bound = name, bound
        self._jobs: deque[Job] = deque()
        self._at_hand: dict[int, Job] = {}
        self._closed = False
        self._thread: threading.Thread | None = None
        self._wake, self._busy = threading.Condition(new_lock()), new_lock()
        atexit.register(self._close)
        mended_after_fork(self)

    def forked(self) -> None:
        """Queue the running jobs of the parent's threads again; see `mended_after_fork`."""
        me = threading.get_ident()
        lost = [job for ident, job in self._at_hand.items() if ident != me]
        self._at_hand = {ident: job for ident, job in self._at_hand.items() if ident == me}
        self._jobs.extendleft(lost)
        self._wake = threading.Condition(new_lock())  # no thread of the child waits
        self._thread = None

    def submit(self, job: Job) -> None:
        """Queue a job; drop it if no thread can be started any more."""
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
                except RuntimeError:  # the interpreter is shutting down, or the system has no threads
                    self._jobs.clear()
                    return
                self._thread = thread
            self._wake.notify()

    def drain(self) -> None:
        """Run the waiting jobs in the calling thread, and wait for the running one."""
        done = True
        while done:
            with self._busy:
                done = self._do_next()

    def _do_next(self) -> bool:
        """Run the oldest job; return False if there is none."""
        me = threading.get_ident()
        outer = self._at_hand.get(me)
        with self._wake:
            if not self._jobs:
                return False
            job = self._at_hand[me] = self._jobs[0]  # always in at least one of the two
            self._jobs.popleft()
        try:
            job()
        except Exception:
            import logging

            logging.getLogger("tenferro").exception("a background job failed; programs continue without its result")
        finally:
            if outer is None:
                del self._at_hand[me]
            else:
                self._at_hand[me] = outer
        return True

    def _work(self) -> None:
        while not self._closed:
            with self._wake:
                while not self._jobs and not self._closed:
                    self._wake.wait()
            with self._busy:
                if not self._closed:
                    self._do_next()

    def _close(self) -> None:
        thread = self._thread
        with self._wake:
            self._closed = True
            self._jobs.clear()
            self._wake.notify_all()
        if thread is not None:
            thread.join(timeout=60)  # beyond it, the end of the process may meet LLVM at work


COMPILING: Final = Background("tenferro compiling")
"""Compiles the kernels of programs."""
