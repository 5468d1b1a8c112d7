"""Primitives for random numbers as pure functions of a key and a position; backends provide the kernels.

A key selects a stream of 64-bit words. Word i is the counter i encrypted under the key by the block cipher
Threefry-2x32 with 20 rounds (J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011); keys, counters and
words are split into their upper and lower 32 bits. Each number uses one word, so any part of a stream can be drawn
independently, in any order, with the same bits everywhere. `tenferro_runtime.random` turns words into numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import DimLike, DTypeError, ShapeError, uint64

__all__ = ["random_bits", "random_exponential", "random_loggamma", "random_normal", "random_uniform"]


def __dir__() -> list[str]:
    return __all__.copy()


def _drawn(what: str, key: Spec, start: Spec, shape: tuple[DimLike, ...], dtype: np.dtype[Any], kinds: str) -> Spec:
    for operand in (key, start):
        if operand.dtype != uint64:
            raise DTypeError(
                f"{what} takes keys and positions of dtype uint64, got {operand!r}", dtype=str(operand.dtype)
            )
    if start.shape != key.shape:
        raise ShapeError(f"{what} takes one position for each key, got {start!r} for {key!r}", shape=start.shape)
    if not isinstance(dtype, np.dtype) or dtype.name not in kinds.split():
        raise DTypeError(f"{what} draws {', '.join(kinds.split())}, not {dtype}", dtype=str(dtype))
    return key.with_(shape=(*key.shape, *shape), dtype=dtype)


@primitive(family="tenferro-tensor.random_bits.v1", extension="random")
def random_bits(key: Spec, start: Spec, *, shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> Spec:
    """Words of the stream of each key from a position onwards.

    A word of 32 bits is the exclusive or of the halves of a 64-bit word; narrower words are its low bits.

    Args:
        key: uint64 keys, of any shape.
        start: uint64 position in the stream of each key, of the shape of the keys.
        shape: shape of the numbers drawn for each key.
        dtype: dtype of the numbers.

    Returns:
        Spec of shape ``(*key.shape, *shape)``.

    Raises:
        DTypeError: keys or positions are not uint64, or the dtype is not supported.
        ShapeError: there is not one position for each key.
    """
    return _drawn("random_bits", key, start, shape, dtype, "uint8 uint16 uint32 uint64")


@primitive(family="tenferro-tensor.random_uniform.v1", extension="random")
def random_uniform(key: Spec, start: Spec, *, shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> Spec:
    """Uniform numbers in [0, 1): multiples of 2**-52, or of 2**-23 in float32.

    Args:
        key: uint64 keys, of any shape.
        start: uint64 position in the stream of each key, of the shape of the keys.
        shape: shape of the numbers drawn for each key.
        dtype: dtype of the numbers.

    Returns:
        Spec of shape ``(*key.shape, *shape)``.

    Raises:
        DTypeError: keys or positions are not uint64, or the dtype is not supported.
        ShapeError: there is not one position for each key.
    """
    return _drawn("random_uniform", key, start, shape, dtype, "float32 float64")


@primitive(family="tenferro-tensor.random_normal.v1", extension="random")
def random_normal(key: Spec, start: Spec, *, shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> Spec:
    """Standard normal numbers, by inversion of the distribution function.

    Args:
        key: uint64 keys, of any shape.
        start: uint64 position in the stream of each key, of the shape of the keys.
        shape: shape of the numbers drawn for each key.
        dtype: dtype of the numbers.

    Returns:
        Spec of shape ``(*key.shape, *shape)``.

    Raises:
        DTypeError: keys or positions are not uint64, or the dtype is not supported.
        ShapeError: there is not one position for each key.
    """
    return _drawn("random_normal", key, start, shape, dtype, "float32 float64")


@primitive(family="tenferro-tensor.random_exponential.v1", extension="random")
def random_exponential(key: Spec, start: Spec, *, shape: tuple[DimLike, ...], dtype: np.dtype[Any]) -> Spec:
    """Exponential numbers of scale 1, by inversion of the distribution function.

    Args:
        key: uint64 keys, of any shape.
        start: uint64 position in the stream of each key, of the shape of the keys.
        shape: shape of the numbers drawn for each key.
        dtype: dtype of the numbers.

    Returns:
        Spec of shape ``(*key.shape, *shape)``.

    Raises:
        DTypeError: keys or positions are not uint64, or the dtype is not supported.
        ShapeError: there is not one position for each key.
    """
    return _drawn("random_exponential", key, start, shape, dtype, "float32 float64")


@primitive(family="tenferro-tensor.random_loggamma.v1", extension="random")
def random_loggamma(key: Spec, start: Spec, a: Spec) -> Spec:
    """Logarithms of gamma-distributed numbers of scale 1.

    The word of each number is the key of a stream of its own.

    Args:
        key: uint64 keys, of any shape.
        start: uint64 position in the stream of each key, of the shape of the keys.
        a: float64 shape parameters, whose leading axes are those of the keys.

    Returns:
        Spec of `a`.

    Raises:
        DTypeError: keys or positions are not uint64, or the dtype is not supported.
        ShapeError: there is not one position for each key.
    """
    out = _drawn("random_loggamma", key, start, a.shape[key.ndim :], a.dtype, "float64")
    if out.shape != a.shape:
        raise ShapeError(f"random_loggamma takes shape parameters for each key, got {a!r} for {key!r}", shape=a.shape)
    return out
