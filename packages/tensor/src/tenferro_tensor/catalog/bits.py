"""Bit-wise and logical operations, element by element; on booleans they are logical."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import uint8

__all__ = [
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "population_count",
    "shift_left",
    "shift_right",
]


@primitive(elementwise=True, domain="bits")
def bitwise_and(x: Spec, y: Spec) -> Spec:
    """Bit-wise (logical) and."""
    return x


@primitive(elementwise=True, domain="bits")
def bitwise_or(x: Spec, y: Spec) -> Spec:
    """Bit-wise (logical) or."""
    return x


@primitive(elementwise=True, domain="bits")
def bitwise_xor(x: Spec, y: Spec) -> Spec:
    """Bit-wise (logical) exclusive or."""
    return x


@primitive(elementwise=True, domain="bits")
def bitwise_not(x: Spec) -> Spec:
    """Bit-wise (logical) complement."""
    return x


@primitive(elementwise=True, domain="integer")
def shift_left(x: Spec, y: Spec) -> Spec:
    """Bits of `x` moved up by `y` places."""
    return x


@primitive(elementwise=True, domain="integer")
def shift_right(x: Spec, y: Spec) -> Spec:
    """Bits of `x` moved down by `y` places; the sign bit is repeated for signed integers."""
    return x


@primitive(elementwise=True, domain="integer")
def population_count(x: Spec) -> Spec:
    """Number of set bits (of the magnitude, for signed integers), as uint8."""
    return x.with_(dtype=uint8)
