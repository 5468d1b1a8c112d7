"""Booleans as the bits of bytes, eight in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.creation import full
from tenferro_tensor.functions.joining import concat
from tenferro_tensor.functions.manipulation import moveaxis, ravel
from tenferro_tensor.operands import axis_of, converted, own, size_of, truth
from tenferro_tensor_core import ArgumentError, DTypeError, bool_, floordiv, uint8

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["packbits", "unpackbits"]


def __dir__() -> list[str]:
    return __all__.copy()


def packbits(x: Any, /, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack nonzero elements into the bits of bytes; missing bits at the end are 0.

    Args:
        x: integer or boolean array.
        axis: axis to pack along; by default the flattened array.
        bitorder: ``"big"`` if the first element is the highest bit, ``"little"`` if it is the lowest.

    Returns:
        uint8 array, with one entry for 8 along the axis.

    Raises:
        DTypeError: `x` is floating point.
        ArgumentError: `bitorder` is another text.

    See also:
        `unpackbits`, the inverse.

    >>> tr.packbits(tr.asarray([1, 0, 1, 0, 0, 0, 0, 1, 1]))
    Tensor([161, 128], dtype=uint8)
    """
    x = listed(x)
    if x.spec.dtype.kind not in "biu":
        raise DTypeError(f"packbits takes integers or booleans, got {x.spec!r}; compare with 0 first")
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of("packbits", axis, x.spec.ndim))
    bits = moveaxis(truth(x), axis, -1)
    n = bits.spec.shape[-1]
    count = floordiv(n + 7, 8)
    rest = full((*bits.spec.shape[:-1], 8 * count - n), False, dtype=bool_, device=x.spec.place.device)
    bits = concat([bits, rest], axis=-1)
    bits = catalog.reshape(bits, shape=(*bits.spec.shape[:-1], count, 8))
    values = catalog.mul(converted(bits, uint8), _weights(bitorder, x))
    return moveaxis(catalog.reduce_sum(values, axes=(bits.spec.ndim - 1,)), -1, axis)


def unpackbits(x: Any, /, axis: int | None = None, count: Any = None, bitorder: str = "big") -> Array:
    """Unpack the bits of bytes into elements that are 0 or 1.

    Args:
        x: uint8 array.
        axis: axis to unpack along; by default the flattened array.
        count: number of bits to keep; a negative number is the number to drop at the end.
        bitorder: ``"big"`` for the highest bit first, ``"little"`` for the lowest.

    Returns:
        uint8 array, with 8 entries for one along the axis.

    Raises:
        DTypeError: `x` is not uint8.
        ArgumentError: `bitorder` is another text.

    See also:
        `packbits`, the inverse.

    >>> tr.unpackbits(tr.asarray([161], dtype=tr.uint8))
    Tensor([1, 0, 1, 0, 0, 0, 0, 1], dtype=uint8)
    """
    x = listed(x)
    if x.spec.dtype != uint8:
        raise DTypeError(f"unpackbits takes bytes in uint8, got {x.spec!r}")
    x, axis = (ravel(x), 0) if axis is None else (x, axis_of("unpackbits", axis, x.spec.ndim))
    rows = moveaxis(x, axis, -1)
    each = catalog.reshape(rows, shape=(*rows.spec.shape, 1))
    bits = converted(catalog.ne(catalog.bitwise_and(each, _weights(bitorder, x)), 0), uint8)
    n = 8 * rows.spec.shape[-1]
    bits = catalog.reshape(bits, shape=(*rows.spec.shape[:-1], n))
    if count is not None:
        kept = size_of("unpackbits", "count", count)
        kept = n + kept if kept.__class__ is int and kept < 0 else kept
        if n.__class__ is int and kept.__class__ is int and kept > n:
            more = full((*rows.spec.shape[:-1], kept - n), 0, dtype=uint8, device=x.spec.place.device)
            bits = concat([bits, more], axis=-1)
        bits = span(bits, bits.spec.ndim - 1, 0, kept)
    return moveaxis(bits, -1, axis)


def _weights(bitorder: str, x: Any) -> Any:
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"the order of bits is 'big' or 'little', got {bitorder!r}", bitorder=bitorder)
    weights = np.asarray([128, 64, 32, 16, 8, 4, 2, 1], uint8)
    return own(weights if bitorder == "big" else weights[::-1].copy(), x.spec.place)
