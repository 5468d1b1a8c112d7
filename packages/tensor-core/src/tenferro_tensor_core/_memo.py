"""A bounded memo, which all caches of this package use."""

from typing import Any, Final

MISSING: Final = object()


class Memo:
    """A dictionary that is cleared when it is full.

    Clearing is far cheaper than tracking recency, and the memo refills with the entries in use.
    Entries are results of pure functions, so that racing threads store the same value.
    """

    __slots__ = ("_clears", "_entries", "_misses", "bound")

    def __init__(self, bound: int) -> None:
        self.bound: int = bound
        self._entries: dict[Any, Any] = {}
        self._misses = 0
        self._clears = 0

    def get(self, key: Any) -> Any:
        """Return the value under `key`, or `MISSING`."""
        return self._entries.get(key, MISSING)

    def put(self, key: Any, value: Any) -> None:
        """Store `value` under `key`."""
        if len(self._entries) >= self.bound:
            self._entries.clear()
            self._clears += 1
        self._misses += 1
        self._entries[key] = value

    def stats(self) -> dict[str, int]:
        """Return the size, the bound, the number of misses and how often the memo was full."""
        return {
            "size": len(self._entries),
            "bound": self.bound,
            "misses": self._misses,
            "clears": self._clears,
        }

    def clear(self) -> None:
        """Remove all entries; results stay the same."""
        self._entries.clear()
