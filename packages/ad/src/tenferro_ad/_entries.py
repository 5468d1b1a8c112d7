"""The entries of recorded ops."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.extension import BoundedCache
from tenferro_tensor.calls import Entry

ENTRIES: Final[BoundedCache[Any, Entry]] = BoundedCache("recorded entries", 4096, recency=False)
