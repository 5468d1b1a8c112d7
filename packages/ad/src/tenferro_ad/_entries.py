"""Entries of recorded ops (interim)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tenferro_runtime.extension import BoundedCache


class Entry(NamedTuple):
    key: Any
    run: Any
    out: Any
    save: tuple[int, ...]
    vjp: Any


ENTRIES: Final[BoundedCache[Any, Entry]] = BoundedCache("recorded entries", 4096, recency=False)
