"""Bits, and the distributions that the others are made of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tenferro_runtime.random._drawing import computed, drawn, floating, given_as, parameters
from tenferro_runtime.random._keys import two
from tenferro_tensor import catalog
from tenferro_tensor.functions import maximum
from tenferro_tensor.operands import shape_of
from tenferro_tensor.random_streams import random_bits, random_exponential, random_normal, random_uniform
from tenferro_tensor_core import DTypeError, is_complex, real_of, uint8, uint16, uint32, uint64
from tenferro_tensor_core import dtype as known_dtype
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_tensor import Array

_WORDS: Final = (uint8, uint16, uint32, uint64)


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Random bits, equal to those of `jax.random.bits` with a Threefry key.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: unsigned integer dtype, uint32 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    Raises:
        DTypeError: the dtype is not unsigned.

    >>> tr.random.bits(tr.random.key(0), (2,))
    Tensor([4070199207, 4202968722], dtype=uint32)
    """
    found = uint32 if dtype is None else known_dtype(dtype)
    if found not in _WORDS:
        raise DTypeError(f"bits draws unsigned integers, not {found}", dtype=str(found))
    return drawn(random_bits, "bits", key, shape, found)


@boundary
def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Uniform numbers in [minval, maxval), equal to those of `jax.random.uniform`.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: real floating-point dtype, float64 by default.
        minval: lower bound, included; differentiable, as `maxval` is.
        maxval: upper bound, excluded.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> tr.random.uniform(tr.random.key(0), (3,))
    Tensor([0.41845711, 0.21629545, 0.96532146])
    """
    dtype = floating("uniform", dtype)
    x = given_as(drawn(random_uniform, "uniform", key, shape, computed(dtype)), dtype)
    if minval.__class__ is float and maxval.__class__ is float and minval == 0.0 and maxval == 1.0:
        return x
    _, (low, high) = parameters("uniform", x.spec.shape, dtype, minval, maxval, key=key)
    return maximum(x * (high - low) + low, catalog.stop_gradient(low))


@boundary
def normal(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Standard normal numbers, equal to those of `jax.random.normal` up to rounding.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: floating-point dtype, float64 by default; complex numbers have variance 1, half of it in each part.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> tr.random.normal(tr.random.key(0), (3,))
    Tensor([-0.20584214, -0.78476578,  1.81608667])
    """
    if dtype is not None and is_complex(found := known_dtype(dtype)):
        first, second = (normal(k, shape, real_of(found)) for k in two(key, "normal"))
        return catalog.complex(first, second) * math.sqrt(0.5)
    dtype = floating("normal", dtype)
    return given_as(drawn(random_normal, "normal", key, shape, computed(dtype)), dtype)


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Exponential numbers of scale 1.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: real floating-point dtype, float64 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> tr.random.exponential(tr.random.key(0), (3,))
    Tensor([0.54207056, 0.24372319, 3.36163426])
    """
    dtype = floating("exponential", dtype)
    return given_as(drawn(random_exponential, "exponential", key, shape, computed(dtype)), dtype)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Array:
    """Booleans that are true with probability `p`.

    Args:
        key: a key.
        p: probabilities.
        shape: shape of the result; by default that of `p`.

    Returns:
        Booleans of the shape `shape`.

    >>> tr.random.bernoulli(tr.random.key(0), 0.9, (4,))
    Tensor([ True,  True, False,  True])
    """
    shape, (p,) = parameters("bernoulli", shape, floating("bernoulli", None), p, key=key)
    return catalog.lt(uniform(key, shape), p)


def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers that are 1 or -1 with probability 1/2 each.

    Args:
        key: a key, or an array of keys.
        shape: shape drawn for each key.
        dtype: dtype of the result, float64 by default.

    Returns:
        Array of shape (*key.shape, *shape).

    >>> sorted(set(tr.random.rademacher(tr.random.key(0), (20,), tr.int64).tolist()))
    [-1, 1]
    """
    found = floating("rademacher", None) if dtype is None else known_dtype(dtype)
    one = catalog.convert(drawn(random_bits, "rademacher", key, shape, uint8) >> 7, dtype=found)
    return one * 2 - 1


def open_uniform(key: Any, shape: Any, dtype: Any) -> Array:
    """Uniform numbers in (0, 1], whose logarithms are finite."""
    return 1.0 - uniform(key, shape_of(shape), dtype)
