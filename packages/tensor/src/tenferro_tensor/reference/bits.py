"""Kernels of bit-wise operations.

Shifts by at least the width of the dtype follow NumPy: 0, or the sign for a right shift of a signed integer.
"""

from typing import Any

from tenferro_tensor.catalog import bits as ops
from tenferro_tensor.reference._table import Special, Table, always


def kernels(xp: Any, special: Special) -> Table:
    """Kernels over the array module `xp`."""

    def count_by_halves(x: Any) -> Any:
        """Sum neighbouring fields of 1, 2, 4 bits in place; for array modules without ``bitwise_count``."""
        v = xp.absolute(xp.asarray(x)).reshape(-1).astype("uint64")
        if x.dtype.kind == "i":  # abs of the least integer is negative, and the cast sign-extends it
            v = v & ((1 << 8 * x.dtype.itemsize) - 1)
        v = v - ((v >> 1) & 0x5555555555555555)
        v = (v & 0x3333333333333333) + ((v >> 2) & 0x3333333333333333)
        v = (v + (v >> 4)) & 0x0F0F0F0F0F0F0F0F
        return ((v * 0x0101010101010101) >> 56).astype("uint8").reshape(x.shape)

    return {
        ops.bitwise_and: always(xp.bitwise_and),
        ops.bitwise_or: always(xp.bitwise_or),
        ops.bitwise_xor: always(xp.bitwise_xor),
        ops.bitwise_not: always(xp.invert),
        ops.shift_left: always(xp.left_shift),
        ops.shift_right: always(xp.right_shift),
        ops.population_count: always(getattr(xp, "bitwise_count", count_by_halves)),
    }
