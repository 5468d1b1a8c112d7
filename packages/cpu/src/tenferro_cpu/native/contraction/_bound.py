"""Bounds the memory that several owners hold; the owners that grew longest ago release theirs."""

from collections import deque
from typing import Protocol
from weakref import ref

from tenferro_tensor_core.forks import new_lock


class Evictable(Protocol):
    """An owner that can recompute what it holds."""

    def forget(self) -> None:
        """Release what is held."""


class Bound:
    """Bounds the total bytes held by several owners; evicts whole owners, oldest first.

    Deleted owners count until their turn; the last owner may exceed the bound by itself.

    Attributes:
        most: maximum total number of bytes.
        held: bytes noted and not released.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._owners: deque[tuple[ref[Evictable], int]] = deque()
        self._lock = new_lock()

    def note(self, owner: Evictable, nbytes: int) -> None:
        """Note that an owner holds more bytes."""
        stale: list[Evictable | None] = []
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
