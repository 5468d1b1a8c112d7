"""`TimelineSignal`: a monotone number, and threads that wait until it reaches a value.

Every thread of a run has one. A thread that completes its step number n sets the number to n. A dependent thread first
compares without a lock, and sleeps only if the number is too small. No wake-up is lost, because waiters are registered
under the lock under which the number is published.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from tenferro_tensor_core import ArgumentError, TenferroError

_next = count().__next__


class CancelledError(TenferroError, RuntimeError):
    """Another part of the run has failed, so that this wait cannot succeed."""


class TimelineSignal:
    """A monotone number with waiters.

    Attributes:
        value: the number, which may be read without a lock.
        error: the error that waiters raise because the number will not be reached, or ``None``.

    >>> timeline = TimelineSignal()
    >>> timeline.signal(2)
    >>> timeline.wait(1), timeline.wait(3, timeout=0.0)
    (True, False)
    """

    __slots__ = ("_heap", "_lock", "error", "value")
    value: int

    def __init__(self) -> None:
        self.value = 0
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        # The second part distinguishes waiters for equal numbers, so that functions are never compared.
        self._heap: list[tuple[int, int, Callable[[], object]]] = []

    def signal(self, value: int) -> None:
        """Set the number, and wake the waiters that it satisfies.

        Args:
            value: the new number.

        Raises:
            ArgumentError: the number is already larger.
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
        for wake in woken:  # without the lock: callbacks may signal other timelines, or wait for them
            wake()

    def fail(self, error: BaseException) -> None:
        """Wake all waiters with an error; the first error stays.

        Args:
            error: the error.
        """
        with self._lock:
            if self.error is None:
                self.error = error
            woken = [entry[2] for entry in self._heap]
            self._heap.clear()
        for wake in woken:
            wake()

    def when(self, value: int, call: Callable[[], object]) -> bool:
        """Call a function when the number is reached or the timeline fails.

        Args:
            value: the number to reach.
            call: the function, called once by the signalling thread, without a lock.

        Returns:
            True, without a call, if the number is already reached or the timeline has failed.
        """
        with self._lock:
            if self.value >= value or self.error is not None:
                return True
            heappush(self._heap, (value, _next(), call))
            return False

    def wait(self, value: int, timeout: float = -1) -> bool:
        """Sleep until a number is reached.

        Args:
            value: the number.
            timeout: seconds to wait, by default forever.

        Returns:
            False if the timeout expired first.

        Raises:
            BaseException: the error with which the timeline failed before the number was reached.
        """
        if self.value >= value:
            return True
        gate = threading.Lock()
        gate.acquire()
        wake = gate.release
        if not self.when(value, wake):
            try:
                late = not gate.acquire(timeout=timeout)
            except BaseException:  # an interrupt: the waiter must be removed
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
        """Remove a waiter; return False if it has already been woken."""
        with self._lock:
            kept = [entry for entry in self._heap if entry[2] != wake]  # bound methods are equal, not identical
            if len(kept) == len(self._heap):
                return False
            self._heap[:] = kept
            heapify(self._heap)
            return True
