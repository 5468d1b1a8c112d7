"""Numerical limits of dtypes, with the names of the Array API."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._dtypes import DType, dtype, is_inexact, is_integer, real_of
from ._errors import DTypeError


@dataclass(frozen=True, slots=True)
class FloatLimits:
    """Limits of a floating-point dtype; for a complex one, those of its parts.

    Attributes:
        bits: number of bits.
        eps: distance from 1 to the next larger number.
        max: largest finite number.
        min: smallest (most negative) finite number.
        smallest_normal: smallest positive normal number.
        dtype: the real dtype.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True, slots=True)
class IntLimits:
    """Limits of an integer dtype.

    Attributes:
        bits: number of bits.
        max: largest number.
        min: smallest number.
        dtype: the dtype.
    """

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(dt: Any) -> FloatLimits:
    """Return the limits of a real or complex floating-point dtype.

    Args:
        dt: a dtype, or a name of it.

    Returns:
        The limits; for a complex dtype, those of its parts.

    Raises:
        DTypeError: the dtype is not floating point.

    >>> finfo("float64").eps, finfo("complex64").bits
    (2.220446049250313e-16, 32)
    >>> finfo("bfloat16").eps
    0.0078125
    """
    found = dtype(dt)
    if not is_inexact(found):
        raise DTypeError(f"finfo needs a floating or complex type, got {found.name}; use iinfo for integers", given=dt)
    part, limits_of = real_of(found), np.finfo
    if part.kind == "V":
        import ml_dtypes  # already imported: it defines the dtype

        limits_of = ml_dtypes.finfo  # type: ignore[assignment]
    info = limits_of(part)
    low, high, tiny = float(info.min), float(info.max), float(info.smallest_normal)
    return FloatLimits(info.bits, float(info.eps), high, low, tiny, part)


def iinfo(dt: Any) -> IntLimits:
    """Return the limits of an integer dtype.

    Args:
        dt: a dtype, or a name of it.

    Returns:
        The limits.

    Raises:
        DTypeError: the dtype is not an integer dtype.

    >>> iinfo("uint8").max, iinfo("int16").min
    (255, -32768)
    """
    found = dtype(dt)
    if not is_integer(found):
        raise DTypeError(f"iinfo needs an integer type, got {found.name}; use finfo for floating types", given=dt)
    info = np.iinfo(found)
    return IntLimits(info.bits, int(info.max), int(info.min), found)
