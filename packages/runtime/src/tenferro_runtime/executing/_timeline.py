"""`TimelineSignal`: a number that only grows, and threads that wait until it is large enough.

Every thread of a run has one. A thread that has done its step number n sets the number to n; whoever needs that step
compares first, without a lock, and sleeps only where the number is still too small. No wake-up is lost, because a
waiter is registered under the lock under which the number is published.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from tenferro_tensor_core import ArgumentError, TenferroError

_next = count().__next__


class CancelledError(TenferroError, RuntimeError):
    """Another part of the run has failed, so that what this one waits for will never come."""


class TimelineSignal:
    """A monotone number with waiters.

    Attributes:
        value: the number; read it freely, and `wait` only where it is too small.
        error: what waiters get in the place of a number that will not be reached, or ``None``.

    >>> timeline = TimelineSignal()
    >>> timeline.signal(2)
    >>> timeline.wait(1), timeline.wait(3, timeout=0.0)
    (True, False)
    """

    __slots__ = ("_heap", "_lock", "error", "value")

    def __init__(self) -> None:
        self.value = 0
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        # The second part tells waiters for one number apart, so that functions are never compared.
        self._heap: list[tuple[int, int, Callable[[], object]]] = []

    def signal(self, value: int) -> None:
        """Let the number be `value`, and wake those who wait for no more.

        Raises:
            ArgumentError: the number is larger already.
        """
        with self._lock:
            if value < self.value:
                raise ArgumentError(
                    f"a timeline stands at {self.value} and was set back to {value}; it only grows", value=value
                )
            self.value = value
            woken = []
            while self._heap and self._heap[0][0] <= value:
                woken.append(heappop(self._heap)[2])
        for wake in woken:  # without the lock: what is called may signal, or wait for, other timelines
            wake()

    def fail(self, error: BaseException) -> None:
        """Wake everybody: what has not been reached never will be. The first error stays."""
        with self._lock:
            if self.error is None:
                self.error = error
            woken = [entry[2] for entry in self._heap]
            self._heap.clear()
        for wake in woken:
            wake()

    def when(self, value: int, call: Callable[[], object]) -> bool:
        """Have `call` called once when the number is reached or the timeline fails; true, without a call, if it is so.

        It is called by the thread that signals, without a lock.
        """
        with self._lock:
            if self.value >= value or self.error is not None:
                return True
            heappush(self._heap, (value, _next(), call))
            return False

    def wait(self, value: int, timeout: float = -1) -> bool:
        """Sleep until the number is reached; false where `timeout` seconds were not enough.

        Raises:
            BaseException: the error that the timeline failed with, before the number was reached.
        """
        if self.value >= value:
            return True
        gate = threading.Lock()
        gate.acquire()
        wake = gate.release
        if not self.when(value, wake):
            try:
                late = not gate.acquire(timeout=timeout)
            except BaseException:  # an interrupt: nobody may wake what has left
                self._withdraw(wake)
                raise
            if late and self._withdraw(wake):
                return False
        if self.value >= value:
            return True
        assert self.error is not None, "a waiter is woken by its number or by an error"
        raise self.error

    @property
    def waiting(self) -> int:
        """Number of waiters."""
        with self._lock:
            return len(self._heap)

    def _withdraw(self, wake: Callable[[], object]) -> bool:
        """Take a waiter out; false where it has been woken meanwhile."""
        with self._lock:
            kept = [entry for entry in self._heap if entry[2] != wake]  # bound methods are equal, not identical
            if len(kept) == len(self._heap):
                return False
            self._heap[:] = kept
            heapify(self._heap)
            return True
