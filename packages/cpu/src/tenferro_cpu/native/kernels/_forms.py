"""Forms of kernels that are known without the code that renders them, which the first operation need not import."""

from typing import Final, NamedTuple

from tenferro_cpu.native.machine._host import Host
from tenferro_tensor.device_model import Access, KernelIR, Operand

LOCATED: Final = ("argmax", "argmin")
"""Reductions to the place of an element."""


class Short(NamedTuple):
    """Short rows.

    Attributes:
        length: length of a row.
        repeated: for each input whether it is one row, shared by all rows.
    """

    length: int
    repeated: tuple[bool, ...]


def access_of(stride: int, itemsize: int) -> Access:
    """The access that a stride along the row implies."""
    return Access.UNIT if stride == itemsize else Access.FIXED if stride == 0 else Access.STRIDED


def number_bits(operand: Operand) -> int:
    """Bits of one number in a register; booleans are loaded as bytes."""
    dtype = operand.dtype
    return 8 * dtype.itemsize // (2 if dtype.kind == "c" else 1)


def lanes_for(kernel: KernelIR, host: Host) -> int:
    """Elements per vector: the widest number of the kernel fills a register."""
    operands = [*kernel.inputs, *kernel.written, *(Operand(d) for d in kernel.dtypes)]
    bits = max(number_bits(o) for o in operands)
    if any(o.access is Access.STRIDED for o in (*kernel.inputs, *kernel.written)):
        bits = max(bits, 64)  # gathers address lanes individually
    return 8 * host.vector_bytes // bits
