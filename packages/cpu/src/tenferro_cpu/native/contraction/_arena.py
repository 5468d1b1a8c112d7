"""Places of intermediate results in one block of memory, reused when their values have been taken."""

from typing import Final

LINE: Final = 64
"""Bytes that every place is a multiple of."""


class Arena:
    """Places within a block that grows as needed.

    Attributes:
        size: bytes that the block has had at most.

    >>> arena = Arena()
    >>> first, second = arena.take(100), arena.take(64)
    >>> arena.give(first, 100)
    >>> arena.take(64), arena.size
    (0, 192)
    """

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # start and end, ascending, never adjacent

    def take(self, nbytes: int) -> int:
        """A place of so many bytes: the smallest gap that has room."""
        n = max(LINE, -(-nbytes // LINE) * LINE)
        gaps = [(end - start, start, number) for number, (start, end) in enumerate(self._free) if end - start >= n]
        if gaps:
            _, start, number = min(gaps)
            end = self._free[number][1]
            self._free[number : number + 1] = [(start + n, end)] if start + n < end else []
            return start
        start = self.size
        if self._free and self._free[-1][1] == self.size:
            start = self._free.pop()[0]
        self.size = start + n
        return start

    def give(self, start: int, nbytes: int) -> None:
        """Give a place back."""
        end = start + max(LINE, -(-nbytes // LINE) * LINE)
        gaps = sorted([*self._free, (start, end)])
        self._free = gaps[:1]
        for low, high in gaps[1:]:
            if low == self._free[-1][1]:
                self._free[-1] = (self._free[-1][0], high)
            else:
                self._free.append((low, high))
