"""Numerical limits of element types, as the Array API names them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._dtypes import DType, dtype, is_inexact, is_integer, real_of
from ._errors import DTypeError


@dataclass(frozen=True, slots=True)
class FloatLimits:
    """Limits of a floating type; of a complex one, those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True, slots=True)
class IntLimits:
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(dt: Any) -> FloatLimits:
    """Return the limits of a floating or complex type.

    Raises:
        DTypeError: the type is not floating.

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
        import ml_dtypes  # it is imported already: the type comes from there

        limits_of = ml_dtypes.finfo  # type: ignore[assignment]
    info = limits_of(part)
    low, high, tiny = float(info.min), float(info.max), float(info.smallest_normal)
    return FloatLimits(info.bits, float(info.eps), high, low, tiny, part)


def iinfo(dt: Any) -> IntLimits:
    """Return the limits of an integer type.

    Raises:
        DTypeError: the type is not an integer type.

    >>> iinfo("uint8").max, iinfo("int16").min
    (255, -32768)
    """
    found = dtype(dt)
    if not is_integer(found):
        raise DTypeError(f"iinfo needs an integer type, got {found.name}; use finfo for floating types", given=dt)
    info = np.iinfo(found)
    return IntLimits(info.bits, int(info.max), int(info.min), found)
