"""Offsets of intermediate results in one block of memory, reused once their values have been consumed."""

from bisect import bisect_left, insort

from tenferro_cpu.native.contraction import tuning


class Arena:
    """Allocates ranges within a block that grows as needed.

    Attributes:
        size: largest size of the block so far, in bytes.

    >>> arena = Arena()
    >>> first, second = arena.take(100), arena.take(64)
    >>> arena.give(first, 100)
    >>> arena.take(64), arena.size
    (0, 192)
    """

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # start and end, ascending, never adjacent
        self._sizes: list[tuple[int, int]] = []  # size and start of the same, ascending

    def take(self, nbytes: int) -> int:
        """Allocate bytes: the smallest gap that has room."""
        n = max(tuning.CACHE_LINE_BYTES, -(-nbytes // tuning.CACHE_LINE_BYTES) * tuning.CACHE_LINE_BYTES)
        at = bisect_left(self._sizes, (n, 0))
        if at < len(self._sizes):
            size, start = self._sizes[at]
            self._remove(start, start + size)
            if n < size:
                self._insert(start + n, start + size)
            return start
        start = self.size
        if self._free and self._free[-1][1] == self.size:
            start = self._free[-1][0]
            self._remove(start, self.size)
        self.size = start + n
        return start

    def give(self, start: int, nbytes: int) -> None:
        """Free a range."""
        end = start + max(tuning.CACHE_LINE_BYTES, -(-nbytes // tuning.CACHE_LINE_BYTES) * tuning.CACHE_LINE_BYTES)
        at = bisect_left(self._free, (start, end))
        after = self._free[at] if at < len(self._free) else (-1, -1)
        before = self._free[at - 1] if at else (-1, -1)
        if after[0] == end:
            self._remove(*after)
            end = after[1]
        if before[1] == start:
            self._remove(*before)
            start = before[0]
        self._insert(start, end)

    def _insert(self, start: int, end: int) -> None:
        insort(self._free, (start, end))
        insort(self._sizes, (end - start, start))

    def _remove(self, start: int, end: int) -> None:
        del self._free[bisect_left(self._free, (start, end))]
        del self._sizes[bisect_left(self._sizes, (end - start, start))]
