"""Sizes of the engine's microkernels, which plans depend on, by dtype and vector level."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native._host import last_level_cache
from tenferro_tensor_core.forks import cached_property

REGISTERS: Final = {"avx512": (64, 32), "avx2": (32, 16), "neon": (16, 32), "generic": (16, 16)}
"""Bytes of a vector register, and number of registers, by level; must equal `vectors.h`."""


@dataclass(frozen=True)
class Microkernels:
    """The microkernels for one dtype at one vector level.

    Attributes:
        char: NumPy's letter of the dtype.
        level: the vector level.
        cache_bytes: last-level cache in bytes; larger results are written past it where that pays.

    >>> code = Microkernels("D", "avx512", 32 << 20)
    >>> code.parts, code.lanes, code.width, code.vectors, code.columns, code.item, code.strips["dot"]
    (2, 8, 4, 3, 8, 16, (4, 2))
    """

    char: str
    level: str
    cache_bytes: int

    @cached_property
    def key(self) -> str:
        """A text that identifies it."""
        return f"{self.char} {self.level} {self.near_bytes}"

    @cached_property
    def real_bytes(self) -> int:
        """Bytes of one real number."""
        return 4 if self.char in "fF" else 8

    @cached_property
    def parts(self) -> int:
        """Real numbers per element."""
        return 2 if self.char in "FD" else 1

    @cached_property
    def item(self) -> int:
        """Bytes per element."""
        return self.parts * self.real_bytes

    @cached_property
    def lanes(self) -> int:
        """Real numbers per vector."""
        return REGISTERS[self.level][0] // self.real_bytes

    @cached_property
    def width(self) -> int:
        """Elements per vector."""
        return self.lanes // self.parts

    @cached_property
    def masks(self) -> bool:
        """Whether one instruction loads or stores some lanes of a vector."""
        return REGISTERS[self.level][0] > 16

    @cached_property
    def _many(self) -> bool:
        return REGISTERS[self.level][1] >= 32

    @cached_property
    def columns(self) -> int:
        """Columns of a full microkernel tile, whose elements are broadcast over a vector."""
        return 8 if self._many else 4

    @cached_property
    def vectors(self) -> int:
        """Vectors of rows of a full tile."""
        return 3 if self._many or self.parts == 1 else 2

    @cached_property
    def rows(self) -> int:
        """Rows of a full tile."""
        return self.vectors * self.width

    @cached_property
    def strips(self) -> dict[str, tuple[int, int]]:
        """Rows and columns of full strips, by kernel."""
        if self._many:
            return {"dot": (4, 4 // self.parts), "lanes": (4, 4)}
        return {"dot": (3, 3), "lanes": (3, 3)} if self.parts == 1 else {"dot": (2, 2), "lanes": (3, 2)}

    @property
    def near_bytes(self) -> int:
        """Bytes that element-wise work may touch while its results are written through the caches.

        More would evict data that is still to be read; the other half is for later operations.
        """
        return self.cache_bytes // 2


@cache
def microkernels(char: str) -> Microkernels:
    """The microkernels of this process, which has the C extension."""
    return Microkernels(char, compiled.LEVEL, last_level_cache())
