"""One background thread for work that nobody waits for, such as compiling kernels."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from tenferro_tensor_core.forks import mended_after_fork, new_lock

Job = Callable[[], object]

BOUND: Final = 1024
"""Jobs that wait; the oldest of more are dropped, for they are wanted least."""


class Background:
    """A daemon thread that does one job after the other, started by the first one.

    A job that raises is logged and forgotten. The process ends when the job at hand is done; those that wait are
    dropped. A child of a fork goes on with the jobs of its parent; those at hand begin anew in it, so a job must leave
    everything as it was until it is done.

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
        self._at_hand: dict[int, Job] = {}
        self._closed = False
        self._thread: threading.Thread | None = None
        self._wake, self._busy = threading.Condition(new_lock()), new_lock()
        atexit.register(self._close)
        mended_after_fork(self)

    def forked(self) -> None:
        """As the contract of `mended_after_fork` says: the jobs of vanished threads wait again."""
        me = threading.get_ident()
        lost = [job for ident, job in self._at_hand.items() if ident != me]
        self._at_hand = {ident: job for ident, job in self._at_hand.items() if ident == me}
        self._jobs.extendleft(lost)
        self._wake = threading.Condition(new_lock())  # nobody waits
        self._thread = None

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
        done = True
        while done:
            with self._busy:
                done = self._do_next()

    def _do_next(self) -> bool:
        """Do the oldest job; false where there is none."""
        me = threading.get_ident()
        outer = self._at_hand.get(me)
        with self._wake:
            if not self._jobs:
                return False
            job = self._at_hand[me] = self._jobs[0]  # at no moment is it in neither place
            self._jobs.popleft()
        try:
            job()
        except Exception:
            import logging

            logging.getLogger("tenferro").exception("work in the background failed; what it was for goes on without it")
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
            thread.join(timeout=10)


COMPILING: Final = Background("tenferro compiling")
"""Where kernels of programs are compiled."""
