"""Kinds of element and their names in LLVM."""

import struct
from typing import Final

_FLOATS: Final = {"f64": "double", "f32": "float", "f16": "half"}
LLVM_TYPES: Final = _FLOATS | {f"i{bits}": f"i{bits}" for bits in (1, 8, 16, 32, 64)}
BITS: Final = {"f64": 64, "f32": 32, "f16": 16, "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def number(kind: str, value: float) -> str:
    """Write a number as LLVM text.

    Args:
        kind: element kind.
        value: the number.

    Returns:
        LLVM text of the constant.

    >>> number("f64", 1.0), number("i8", -3), number("i1", True)
    ('0x3FF0000000000000', '-3', 'true')
    """
    if kind[0] == "f":
        if kind == "f32":  # LLVM wants the bits of the double of equal value
            value = struct.unpack("f", struct.pack("f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return ("true" if value else "false") if kind == "i1" else str(int(value))


def indices(order: list[int]) -> str:
    """Index vector of a shuffle; negative entries are lanes with unspecified content.

    >>> indices([1, -1])
    '<2 x i32> <i32 1, i32 poison>'
    """
    return f"<{len(order)} x i32> <{', '.join('i32 poison' if i < 0 else f'i32 {i}' for i in order)}>"
