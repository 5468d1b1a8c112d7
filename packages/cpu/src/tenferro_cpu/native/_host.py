"""`Host`: what the compiler may assume about this processor."""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tenferro_cpu.native._extension import compiled

FALLBACK_CACHE = 8 << 20
"""Assumed last-level cache (bytes) if the system does not report it."""


@dataclass(frozen=True, slots=True)
class Host:
    """Processor, instruction set and vector width that kernels are rendered for.

    Methods take:
        item_bytes: bytes of an element.

    Methods return:
        A number of elements.

    Attributes:
        triple: LLVM target triple; empty if no compiler has been loaded.
        cpu: LLVM's name of the processor, likewise.
        features: LLVM feature string, likewise.
        level: ``"avx512"``, ``"avx2"``, ``"neon"`` or ``"generic"``.
        vector_bytes: bytes of a vector register.
        registers: number of vector registers.
        cache_bytes: last-level cache in bytes; larger results are written past it where that pays.

    >>> Host("x86_64-unknown-linux-gnu", "znver4", "", "avx512", 64, 32, 32 << 20).lanes(8)
    8
    """

    triple: str
    cpu: str
    features: str
    level: str
    vector_bytes: int
    registers: int
    cache_bytes: int

    def lanes(self, item_bytes: int) -> int:
        """Number of elements in a vector."""
        return max(1, self.vector_bytes // item_bytes)

    @property
    def near_bytes(self) -> int:
        """Bytes that element-wise work may touch while its results are written through the caches.

        More would evict data that is still to be read; the other half is for later operations.
        """
        return self.cache_bytes // 2

    @property
    def tables(self) -> bool:
        """Whether one instruction looks up sixteen numbers in registers."""
        return self.level == "avx512"

    @property
    def masks(self) -> bool:
        """Whether one instruction loads or stores some lanes of a vector."""
        return self.level.startswith("avx")

    @property
    def attributes(self) -> str:
        """Function attributes that allow LLVM to use the full register width."""
        return f'nounwind "prefer-vector-width"="{8 * self.vector_bytes}"'


LEVELS: Final = {"avx512": (64, 32), "avx2": (32, 16), "neon": (16, 32), "generic": (16, 16)}
"""Bytes of a vector register, and number of registers, by level."""


def here(limit: str | None = None) -> Host:
    """This processor, as far as it is known without a compiler; `limit` is the highest level to use."""
    assert compiled is not None
    level = compiled.LEVEL
    if limit is not None and (limit == "generic" or (limit, level) == ("avx2", "avx512")):
        level = limit
    return Host("", "", "", level, *LEVELS[level], last_level_cache())


def detect(binding: Any, limit: str | None = None) -> Host:
    """The host as llvmlite's `binding` sees it; `limit` is the highest level to use, for tests of narrow kernels.

    A level of another architecture limits nothing.
    """
    triple = binding.get_process_triple()
    flags: dict[str, bool] = dict(binding.get_host_cpu_features())
    level = level_of(triple, flags)
    if limit is not None and limit != level and (limit == "generic" or (limit, level) == ("avx2", "avx512")):
        level = limit
        dropped = r"avx512|avx10|evex|amx" if level == "avx2" else r"avx|fma|f16c|xop|vaes|vpclmul|evex|amx"
        flags = {name: on and not re.match(dropped, name) for name, on in flags.items()}
    features = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(flags.items()))
    width, registers = LEVELS[level]
    return Host(triple, binding.get_host_cpu_name(), features, level, width, registers, last_level_cache())


def level_of(triple: str, flags: dict[str, bool]) -> str:
    """The widest vector level that the flags allow.

    >>> level_of("x86_64-pc-linux", {"avx2": True, "fma": True})
    'avx2'
    >>> level_of("aarch64-apple-darwin", {})
    'neon'
    """
    if triple.startswith(("aarch64", "arm64")):
        return "neon"
    if all(flags.get(f"avx512{part}") for part in ("f", "dq", "bw", "vl")):
        return "avx512"
    return "avx2" if flags.get("avx2") and flags.get("fma") else "generic"


@cache
def last_level_cache() -> int:
    """Bytes of the largest cache of the first core."""
    sizes = [FALLBACK_CACHE] if os.name != "posix" else []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        found = re.fullmatch(r"(\d+)([KM])", path.read_text().strip())
        if found is not None:
            sizes.append(int(found[1]) << (10 if found[2] == "K" else 20))
    return max(sizes, default=FALLBACK_CACHE)
