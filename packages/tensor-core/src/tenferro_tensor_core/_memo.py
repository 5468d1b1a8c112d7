"""A bounded memo: the one shape that caches take in this package."""

from typing import Any, Final

MISSING: Final = object()


class Memo:
    """A dictionary that forgets everything when it is full.

    Clearing is cheaper by far than tracking recency, and a full memo refills with what is in use.
    Entries are results of pure functions: two threads that race store the same value.
    """

    __slots__ = ("_clears", "_entries", "_misses", "bound")

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._entries: dict[Any, Any] = {}
        self._misses = 0
        self._clears = 0

    def get(self, key: Any) -> Any:
        """Return the value under `key`, or `MISSING`."""
        return self._entries.get(key, MISSING)

    def put(self, key: Any, value: Any) -> None:
        """Remember `value` under `key`."""
        if len(self._entries) >= self.bound:
            self._entries.clear()
            self._clears += 1
        self._misses += 1
        self._entries[key] = value

    def stats(self) -> dict[str, int]:
        """Return size, bound, number of misses and number of times it was full."""
        return {
            "size": len(self._entries),
            "bound": self.bound,
            "misses": self._misses,
            "clears": self._clears,
        }

    def clear(self) -> None:
        """Forget everything; results stay the same."""
        self._entries.clear()
