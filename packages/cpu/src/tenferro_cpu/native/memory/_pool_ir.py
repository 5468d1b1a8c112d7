"""LLVM text of the memory pool: the four functions of a NumPy allocation handler, and `trim`.

Blocks of at least `POOLED` bytes are kept when they are freed, in one list per size class (eight classes per octave)
and in one list by age. A header of 64 bytes in front of the data knows where the block began, so that `free` trusts
no size that it is told. The state of a pool is memory that the caller owns; every function gets its address first.
"""

from typing import Final

from tenferro_cpu.native.memory._pool_handler_text import HANDLER
from tenferro_cpu.native.memory._pool_list_text import LISTS
from tenferro_cpu.native.memory._pool_system_text import SYSTEM_HUGE, SYSTEM_PLAIN

POOLED: Final = 128 << 10
"""Smaller blocks come from the C library, aligned as well; it is quicker there than any list."""

STATE: Final = ("lock", "limit", "cached", "live", "hits", "misses", "returned", "newest", "oldest", "colour", "peak")
"""Words at the start of the state; the heads of the lists of the classes follow."""
CLASSES: Final = 512
HEADS: Final = 16
STATE_WORDS: Final = HEADS + CLASSES

NAMES: Final = ("malloc", "calloc", "realloc", "free", "trim")
SYSTEM: Final = ("system_malloc", "system_calloc", "system_free")
EXTERNAL: Final = ("sched_yield", "mmap", "munmap", "madvise")
"""What the text calls; the latter only where the system has them."""

_PLAIN, _TAKEN, _KEPT = 0x74656E6665727201, 0x74656E6665727202, 0x74656E6665727203
"""First word of a header: from the C library, in use, or waiting in the lists. Any other word means a foreign block."""


def text(huge_pages: bool, yields: bool, attributes: str) -> str:
    """The module.

    Args:
        huge_pages: take blocks of 2 MB and more from ``mmap``, aligned to 2 MB, and ask for huge pages (Linux).
        yields: give the processor away while another thread holds the lock.
        attributes: attributes of every function.
    """
    field = {name: f"getelementptr i64, ptr %pool, i64 {i}" for i, name in enumerate(STATE)}
    parts = [SYSTEM_HUGE if huge_pages else SYSTEM_PLAIN, LISTS, HANDLER]
    out = "\n".join(parts)
    for name, place in field.items():
        out = out.replace(f"@@{name}", place)
    for name, number in {"POOLED": POOLED, "HEADS": HEADS, "PLAIN": _PLAIN, "TAKEN": _TAKEN, "KEPT": _KEPT}.items():
        out = out.replace(f"${name}", str(number))
    out = out.replace("$YIELD", "call i32 @sched_yield()" if yields else "fence acquire")
    return out + ("\ndeclare i32 @sched_yield()" if yields else "") + f"\nattributes #0 = {{ {attributes} }}\n"
