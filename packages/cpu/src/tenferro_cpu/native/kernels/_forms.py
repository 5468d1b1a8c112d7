"""Forms of rows that are known without the code that renders them, which the first operation need not import."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from tenferro_cpu.native._host import Host


class Access(Enum):
    """How an operand or a result lies along a row."""

    UNIT = "unit"
    """Contiguous elements."""
    FIXED = "fixed"
    """One element for the whole row."""
    STRIDED = "strided"
    """Any other stride, passed when the kernel is called."""


def access_of(stride: int, itemsize: int) -> Access:
    """The access that a stride along the row implies."""
    return Access.UNIT if stride == itemsize else Access.FIXED if stride == 0 else Access.STRIDED


def number_bits(dtype: np.dtype[Any]) -> int:
    """Bits of one number in a register; booleans are loaded as bytes."""
    return 8 * dtype.itemsize // (2 if dtype.kind == "c" else 1)


def lanes_for(dtypes: Sequence[np.dtype[Any]], accesses: Sequence[Access], host: Host) -> int:
    """Elements per vector: the widest number of a row fills a register."""
    bits = max(map(number_bits, dtypes))
    if Access.STRIDED in accesses:
        bits = max(bits, 64)  # gathers address lanes individually
    return 8 * host.vector_bytes // bits
