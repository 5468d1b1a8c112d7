"""Constants that tune copies; `benchmarks/native_memory.py` measures what they decide."""

from typing import Final

COPY_MIN_BYTES: Final = 16 << 10
"""Smallest array for which a plan is looked up; for smaller ones the lookup costs as much as NumPy's copy."""
UNLOCKED_MIN_BYTES: Final = 256 << 10
"""Larger copies release the interpreter's lock."""
BYTES_AT_ONCE: Final = 24 << 20
"""Bytes copied per call: the interpreter handles signals between calls."""
CUT_MULTIPLE: Final = 64
"""A large copy is cut along an axis at multiples of this many elements."""
PAGE_BYTES: Final = 4096
"""Bytes along an axis above which a cut costs a negligible number of cache lines."""

STREAM_CACHE_DIVISOR: Final = 2
"""Results larger than this fraction of the last-level cache are written past it."""
TILE_BLOCKS: Final = 32
"""Blocks along each side of a tile."""
CACHED_TILE_BLOCKS: Final = 8
"""The same if whole cache lines are written through the caches; larger tiles would not fit the nearest one."""

LINE_ELEMENTS: Final = 64
"""Maximum rows or columns combined from several axes if all axes are powers of two: whole cache lines are moved."""
SPREAD_ELEMENTS: Final = 128
"""The same for other axes: partially written lines must still be cached for the next part."""

MAX_TABLE: Final = 4096
"""Longest table of rows or columns; a longer axis is cut into parts of `TABLE_PART`."""
TABLE_PART: Final = 1024
MAX_OUTER_TABLE: Final = 1 << 20
"""Longest table of outer offsets."""
MAX_PLANS: Final = 256
MAX_PLAN_BYTES: Final = 64 << 20
"""Bounds of the cache of plans: entries, and bytes of their tables of offsets."""

SHARED_MIN_BYTES: Final = 1 << 20
"""Smallest copy that is cut into chunks for the thread team."""
MAX_CHUNKS: Final = 32
"""Maximum chunks of a copy: enough to keep any usual number of threads busy."""
CHUNK_MIN_BYTES: Final = 128 << 10
