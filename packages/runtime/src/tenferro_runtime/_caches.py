"""`BoundedCache`: a table with an owner, a bound and counters; all live caches can be listed and cleared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload
from weakref import WeakSet

from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import new_lock

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_live: WeakSet[BoundedCache[Any, Any]] = WeakSet()
_lock = new_lock()


class BoundedCache(Generic[K, V]):
    """A thread-safe table that never grows beyond its bound.

    A full table evicts the least recently used entry; with ``recency=False`` it is cleared instead, which makes reads
    cheaper. `table` is the plain dictionary, for readers that skip the counters.

    Args:
        owner: a description for users who read `caches`.
        bound: largest number of entries.
        recency: whether reads count as use.

    >>> squares = BoundedCache("squares", 2)
    >>> [squares.get_or_make(n, lambda: n * n) for n in (1, 2, 1, 3)]
    [1, 4, 1, 9]
    >>> squares.stats()
    {'owner': 'squares', 'size': 2, 'bound': 2, 'hits': 1, 'misses': 3, 'evictions': 1}
    >>> 2 in squares.table
    False
    """

    __slots__ = ("__weakref__", "_lock", "bound", "evictions", "hits", "misses", "owner", "recency", "table")
    bound: int
    evictions: int
    hits: int
    misses: int
    owner: str
    recency: bool

    def __init__(self, owner: str, bound: int, *, recency: bool = True) -> None:
        if bound < 1:
            raise ArgumentError(f"a cache holds at least one entry, but bound={bound} was given", bound=bound)
        self.owner, self.bound, self.recency = owner, bound, recency
        self.table: dict[K, V] = {}
        self.hits = self.misses = self.evictions = 0
        self._lock = new_lock()
        with _lock:
            _live.add(self)

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        """Look up an entry.

        Args:
            key: a hashable key.
            default: returned if there is no entry.

        Returns:
            The entry or `default`.
        """
        with self._lock:
            if key not in self.table:
                self.misses += 1
                return default
            self.hits += 1
            if not self.recency:
                return self.table[key]
            value = self.table[key] = self.table.pop(key)
            return value

    def put(self, key: K, value: V) -> V:
        """Store a value, evicting others from a full table.

        Args:
            key: a hashable key.
            value: the value.

        Returns:
            The value.
        """
        with self._lock:
            if key not in self.table and len(self.table) >= self.bound:
                if self.recency:
                    del self.table[next(iter(self.table))]
                    self.evictions += 1
                else:
                    self.evictions += len(self.table)
                    self.table.clear()
            self.table[key] = value
        return value

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The entry under a key, made on first use.

        Two threads may both make it; one result is kept, and both return it.

        Args:
            key: a hashable key.
            make: makes the value.

        Returns:
            The value.
        """
        found = self.get(key, _MISSING)
        if found is not _MISSING:
            return found  # type: ignore[return-value]
        made = make()
        with self._lock:
            if key in self.table:
                return self.table[key]
            return self.put(key, made)

    def clear(self) -> None:
        """Drop every entry; counters are kept."""
        with self._lock:
            self.table.clear()

    def stats(self) -> dict[str, Any]:
        """Owner, size, bound and counters."""
        with self._lock:
            return {
                "owner": self.owner,
                "size": len(self.table),
                "bound": self.bound,
                "hits": self.hits,
                "misses": self.misses,
                "evictions": self.evictions,
            }

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"<cache of {self.owner}: {len(self.table)}/{self.bound}>"


_MISSING = object()


def caches() -> list[BoundedCache[Any, Any]]:
    """All live caches of the process.

    Returns:
        The caches, sorted by owner.
    """
    with _lock:
        return sorted(_live, key=lambda cache: cache.owner)
