"""Python's operators and the ops behind them, for classes of values that define them."""

from __future__ import annotations

from typing import Final

from tenferro_tensor import catalog
from tenferro_tensor._primitive import Op

__all__ = ["BINARY_OPERATORS", "UNARY_OPERATORS"]

BINARY_OPERATORS: Final[dict[str, Op]] = {
    f"__{name}__": primitive.op()
    for name, primitive in {
        "add": catalog.add, "sub": catalog.sub, "mul": catalog.mul, "truediv": catalog.div, "pow": catalog.pow,
        "floordiv": catalog.floor_divide, "mod": catalog.remainder, "and": catalog.bitwise_and,
        "or": catalog.bitwise_or, "xor": catalog.bitwise_xor, "lshift": catalog.shift_left,
        "rshift": catalog.shift_right, "eq": catalog.eq, "ne": catalog.ne, "lt": catalog.lt, "le": catalog.le,
        "gt": catalog.gt, "ge": catalog.ge,
    }.items()
}  # fmt: skip
"""Operators of two operands and the ops behind them."""

UNARY_OPERATORS: Final[dict[str, Op]] = {
    "__neg__": catalog.neg.op(),
    "__abs__": catalog.abs.op(),
    "__invert__": catalog.bitwise_not.op(),
}
"""Operators of one operand and the ops behind them."""
