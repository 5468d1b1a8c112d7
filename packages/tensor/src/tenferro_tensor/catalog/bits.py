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


def __dir__() -> list[str]:
    return __all__.copy()


@primitive(elementwise=True, domain="bits")
def bitwise_and(x: Spec, y: Spec) -> Spec:
    """Bitwise and; logical and of booleans."""
    return x


@primitive(elementwise=True, domain="bits")
def bitwise_or(x: Spec, y: Spec) -> Spec:
    """Bitwise or; logical or of booleans."""
    return x


@primitive(elementwise=True, domain="bits")
def bitwise_xor(x: Spec, y: Spec) -> Spec:
    """Bitwise exclusive or; logical exclusive or of booleans."""
    return x


@primitive(elementwise=True, domain="bits")
def bitwise_not(x: Spec) -> Spec:
    """Bitwise complement; logical not of booleans."""
    return x


@primitive(elementwise=True, domain="integer")
def shift_left(x: Spec, y: Spec) -> Spec:
    """Bits of `x` shifted left by `y` places."""
    return x


@primitive(elementwise=True, domain="integer")
def shift_right(x: Spec, y: Spec) -> Spec:
    """Bits of `x` shifted right by `y` places; signed integers keep their sign."""
    return x


@primitive(elementwise=True, domain="integer")
def population_count(x: Spec) -> Spec:
    """Number of set bits (of the absolute value of signed integers), as uint8."""
    return x.with_(dtype=uint8)
