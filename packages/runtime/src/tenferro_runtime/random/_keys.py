"""Keys: the states from which random numbers are computed."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_runtime.random._drawing import beside, checked, drawn
from tenferro_runtime.random._stream import halves
from tenferro_tensor import catalog, tensor
from tenferro_tensor.functions import stack
from tenferro_tensor.operands import value
from tenferro_tensor.random_streams import random_bits
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError, kind_of, uint32, uint64

if TYPE_CHECKING:
    from tenferro_tensor import Array


def key(seed: Any, /) -> Array:
    """The key of a seed.

    Use a key only once: for more numbers, `split` it, or draw more at once. Keys are ordinary arrays; an array of
    keys gives an array of independent streams.

    Args:
        seed: an integer, taken modulo 2**64; may be traced in a program.

    Returns:
        A uint64 scalar array.

    Raises:
        ArgumentError: the seed is not an integer.

    >>> tr.random.key(42)
    Tensor(42, dtype=uint64)
    """
    if hasattr(seed, "spec"):
        if kind_of(seed.spec.dtype) not in "iu" or seed.spec.ndim:
            raise ArgumentError(f"key takes an integer as seed, got {seed.spec!r}; an array of keys is made by split")
        return catalog.convert(seed, dtype=uint64)
    try:
        return tensor(np.array(operator.index(seed) % (1 << 64), uint64))
    except TypeError:
        raise ArgumentError(f"key takes an integer as seed, got {seed!r}", seed=seed) from None


def split(key: Any, num: Any = 2, /) -> Array:
    """New keys with independent streams; do not use the old key again.

    Args:
        key: a key, or an array of keys.
        num: number of keys, or their shape.

    Returns:
        Keys of shape (*key.shape, *num).

    >>> first, second = tr.random.split(tr.random.key(0))
    """
    return drawn(random_bits, "split", key, num, uint64)


def two(key: Any, what: str = "split") -> tuple[Any, Any]:
    """Two keys from one; `what` names the public function, for errors."""
    both = split(checked(what, key))
    return both[..., 0], both[..., 1]


def fold_in(key: Any, data: Any, /) -> Array:
    """A new key from a key and an integer: element `data` of the keys that `split` returns.

    Args:
        key: a key, or an array of keys.
        data: an integer of at least 0, such as the number of a step; may be traced in a program.

    Returns:
        A key of the shape of `key`.

    >>> key = tr.random.key(0)
    >>> bool(tr.random.fold_in(key, 3) == tr.random.split(key, 5)[3])
    True
    """
    key = checked("fold_in", key)
    at = beside(key, data)
    if kind_of(at.spec.dtype) not in "iu":
        raise ArgumentError(f"fold_in takes an integer, got {at.spec!r}", data=data)
    at = catalog.convert(at, dtype=uint64)
    if at.spec.shape != key.spec.shape:
        at = catalog.broadcast_in_dim(at, shape=key.spec.shape, dims=tuple(range(at.ndim)))
    return random_bits(key, at, shape=(), dtype=uint64)


def key_data(key: Any, /) -> Array:
    """The upper and lower 32 bits of keys, the data of a JAX key.

    Args:
        key: a key, or an array of keys.

    Returns:
        uint32 array of shape (*key.shape, 2).

    >>> tr.random.key_data(tr.random.key(7))
    Tensor([0, 7], dtype=uint32)
    """
    key = checked("key_data", key)
    return stack(halves(key), axis=-1)


def wrap_key_data(data: Any, /) -> Array:
    """Keys from their upper and lower 32 bits; the inverse of `key_data`.

    Args:
        data: uint32 array (..., 2).

    Returns:
        Keys of the shape of `data` without its last axis.

    Raises:
        DTypeError: the dtype is not uint32.
        ShapeError: the last axis does not have extent 2.

    >>> tr.random.wrap_key_data(tr.asarray([0, 7], dtype=tr.uint32))
    Tensor(7, dtype=uint64)
    """
    data = value(data)
    if data.spec.dtype != uint32:
        raise DTypeError(f"wrap_key_data takes uint32, got {data.spec!r}", dtype=str(data.spec.dtype))
    if not data.spec.ndim or data.spec.shape[-1] != 2:
        raise ShapeError(f"wrap_key_data takes two halves along the last axis, got {data.spec!r}")
    upper, lower = (catalog.convert(data[..., k], dtype=uint64) for k in (0, 1))
    return (upper << 32) | lower
