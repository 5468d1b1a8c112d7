"""A bound of the memory that many owners keep, each by itself: those that grew longest ago give theirs up."""

from collections import deque
from typing import Protocol
from weakref import ref

from tenferro_tensor_core.forks import new_lock


class Forgets(Protocol):
    """What can make again what it keeps."""

    def forget(self) -> None:
        """Give up what is kept."""


class Bound:
    """Counts what owners keep, and has them give it up, the first ones first, while it is too much.

    Owners that are gone count until it is their turn; the last one may keep more than all together.

    Attributes:
        most: bytes that all may keep together.
        held: bytes that were noted and not given up.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._owners: deque[tuple[ref[Forgets], int]] = deque()
        self._lock = new_lock()

    def note(self, owner: Forgets, nbytes: int) -> None:
        """An owner keeps so many bytes more."""
        stale: list[Forgets | None] = []
        with self._lock:
            self._owners.append((ref(owner), nbytes))
            self.held += nbytes
            while self.held > self.most and len(self._owners) > 1:
                first, n = self._owners.popleft()
                self.held -= n
                stale.append(first())
        for one in stale:  # they may have locks of their own
            if one is not None and one is not owner:
                one.forget()
