"""Bit-wise operations, element by element; on booleans they are logical."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
]


def __dir__() -> list[str]:
    return __all__.copy()


_BITWISE_AND: Final = catalog.bitwise_and.op()
_POPULATION_COUNT: Final = catalog.population_count.op()
_BITWISE_NOT: Final = catalog.bitwise_not.op()
_SHIFT_LEFT: Final = catalog.shift_left.op()
_BITWISE_OR: Final = catalog.bitwise_or.op()
_SHIFT_RIGHT: Final = catalog.shift_right.op()
_BITWISE_XOR: Final = catalog.bitwise_xor.op()


def bitwise_and(x1: Any, x2: Any, /) -> Array:
    """Bitwise and; logical and of booleans.

    Args:
        x1, x2: integer or boolean arrays or numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is a floating-point array.
        ShapeError: the shapes do not broadcast.

    >>> tr.bitwise_and(tr.asarray([6, 5]), 3)
    Tensor([2, 1])
    """
    return _BITWISE_AND(x1, x2)


def bitwise_count(x: Any, /) -> Array:
    """Number of set bits of the absolute value.

    Args:
        x: integer array of any shape.

    Returns:
        uint8 array of the shape of `x`.

    Raises:
        DTypeError: `x` is not an integer array.

    >>> tr.bitwise_count(tr.asarray([7, 8])).tolist()
    [3, 1]
    """
    return _POPULATION_COUNT(x)


def bitwise_invert(x: Any, /) -> Array:
    """Bitwise complement; logical not of booleans.

    Args:
        x: integer or boolean array of any shape.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is floating point.

    >>> tr.bitwise_invert(tr.asarray([0, 1]))
    Tensor([-1, -2])
    """
    return _BITWISE_NOT(x)


def bitwise_left_shift(x1: Any, x2: Any, /) -> Array:
    """Shift the bits of `x1` left by `x2` places.

    Args:
        x1: integers.
        x2: numbers of places, integers; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is not an integer array.
        ShapeError: the shapes do not broadcast.

    >>> tr.bitwise_left_shift(tr.asarray([1, 2]), 3)
    Tensor([ 8, 16])
    """
    return _SHIFT_LEFT(x1, x2)


def bitwise_or(x1: Any, x2: Any, /) -> Array:
    """Bitwise or; logical or of booleans.

    Args:
        x1, x2: integer or boolean arrays or numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is a floating-point array.
        ShapeError: the shapes do not broadcast.

    >>> tr.bitwise_or(tr.asarray([4, 5]), 3)
    Tensor([7, 7])
    """
    return _BITWISE_OR(x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Array:
    """Shift the bits of `x1` right by `x2` places; signed integers keep their sign.

    Args:
        x1: integers.
        x2: numbers of places, integers; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is not an integer array.
        ShapeError: the shapes do not broadcast.

    >>> tr.bitwise_right_shift(tr.asarray([8, -8]), 2)
    Tensor([ 2, -2])
    """
    return _SHIFT_RIGHT(x1, x2)


def bitwise_xor(x1: Any, x2: Any, /) -> Array:
    """Bitwise exclusive or; logical exclusive or of booleans.

    Args:
        x1, x2: integer or boolean arrays or numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is a floating-point array.
        ShapeError: the shapes do not broadcast.

    >>> tr.bitwise_xor(tr.asarray([6, 5]), 3)
    Tensor([5, 6])
    """
    return _BITWISE_XOR(x1, x2)
