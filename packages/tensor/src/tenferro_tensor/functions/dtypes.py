"""Element types: conversion, promotion and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor.dispatch import explicit
from tenferro_tensor.functions.placement import to_device
from tenferro_tensor.identity import apart
from tenferro_tensor.operands import converted, copied, value
from tenferro_tensor.promotion import keep_imaginary
from tenferro_tensor_core import DType, DTypeError, FloatLimits, IntLimits, can_convert
from tenferro_tensor_core import dtype as known_dtype
from tenferro_tensor_core import finfo as _finfo
from tenferro_tensor_core import iinfo as _iinfo
from tenferro_tensor_core import isdtype as _isdtype
from tenferro_tensor_core import result_type as _result_type

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["astype", "can_cast", "cast", "convert", "finfo", "iinfo", "isdtype", "result_type"]


def __dir__() -> list[str]:
    return __all__.copy()


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Convert to another dtype; any conversion but complex to real is allowed.

    The result has memory of its own; with ``copy=False`` it is `x` itself where dtype and device are those of `x`.

    Args:
        x: array of any shape and dtype.
        dtype: the dtype, or a name of it.
        copy: True always copies; False returns `x` itself if nothing changes.
        device: device to move the result to.

    Returns:
        Array of the shape of `x`, of the given dtype.

    Raises:
        DTypeError: `x` is complex and `dtype` is real; use `real`, `imag` or `cast`.

    See also:
        `convert`, which refuses any loss; `cast`, which allows any.

    >>> tr.astype(tr.asarray([1.7, 0.0]), tr.int64)
    Tensor([1, 0])
    """
    x, dtype = value(x), known_dtype(dtype)
    keep_imaginary("astype", x.spec.dtype, dtype)
    if device is None:
        out = converted(x, dtype)
    else:
        with explicit(device):
            out = converted(to_device(x, device), dtype)
    return copied(x, out, True if copy else None)


def convert(x: Any, dtype: Any, /) -> Array:
    """Convert to another dtype that preserves kind and range.

    Args:
        x: array of any shape and dtype.
        dtype: the dtype, or a name of it.

    Returns:
        Array of the shape of `x`, of the given dtype.

    Raises:
        DTypeError: kind or range would be lost; use `cast`.

    See also:
        `astype` and `cast`, which allow loss.

    >>> tr.convert(tr.asarray([1, 2]), tr.float64)
    Tensor([1., 2.])
    """
    x, dtype = value(x), known_dtype(dtype)
    if not can_convert(x.spec.dtype, dtype):
        raise DTypeError(
            f"convert from {x.spec.dtype.name} to {dtype.name} would lose kind or range; "
            "ask for the loss with cast(x, dtype)",
            source=x.spec.dtype.name,
            target=dtype.name,
        )
    return apart(x, converted(x, dtype))


def cast(x: Any, dtype: Any, /) -> Array:
    """Convert to another dtype, whatever is lost: fractions, imaginary parts, high bits.

    Args:
        x: array of any shape and dtype.
        dtype: the dtype, or a name of it.

    Returns:
        Array of the shape of `x`, of the given dtype.

    See also:
        `astype` and `convert`, which are checked.

    >>> tr.cast(tr.asarray([1.5 + 2j]), tr.float64)
    Tensor([1.5])
    """
    x = value(x)
    return apart(x, converted(x, known_dtype(dtype)))


def can_cast(from_: Any, /, to: Any) -> bool:
    """Whether a conversion preserves kind and range.

    Args:
        from_: dtype, or array with that dtype.
        to: the target dtype.

    Returns:
        True if promotion leads from one dtype to the other.

    >>> tr.can_cast(tr.int32, tr.float64), tr.can_cast(tr.float64, tr.float32)
    (True, False)
    """
    return can_convert(_dtype_of(from_), known_dtype(to))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: the dtype, or a name of it.
        kind: a dtype, a kind name of the Array API such as ``"real floating"``, or a tuple of these.

    Returns:
        True if the dtype is of that kind, or of one of several kinds.

    Raises:
        ArgumentError: a kind name is unknown.

    >>> tr.isdtype(tr.float32, "real floating")
    True
    """
    return _isdtype(dtype, kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Common dtype of arrays, dtypes and Python numbers.

    Args:
        arrays_and_dtypes: at least one; Python numbers are weakly typed.

    Returns:
        The promoted dtype.

    Raises:
        ArgumentError: nothing was given.

    >>> tr.result_type(tr.float32, 1.0), tr.result_type(tr.int64, tr.float32)
    (dtype('float32'), dtype('float64'))
    """
    return _result_type(*[a.dtype if hasattr(a, "spec") else a for a in arrays_and_dtypes])


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a floating-point dtype; for complex dtypes, those of the parts.

    Args:
        type: dtype, or array with that dtype.

    Returns:
        Bits, eps, max, min, smallest_normal and dtype.

    Raises:
        DTypeError: the dtype is not floating point.

    >>> tr.finfo(tr.float32).bits, tr.finfo(tr.complex128).dtype
    (32, dtype('float64'))
    """
    return _finfo(_dtype_of(type))


def iinfo(type: Any, /) -> IntLimits:
    """Limits of an integer dtype.

    Args:
        type: dtype, or array with that dtype.

    Returns:
        Bits, max, min and dtype.

    Raises:
        DTypeError: the dtype is not an integer.

    >>> tr.iinfo(tr.int8).max
    127
    """
    return _iinfo(_dtype_of(type))


def _dtype_of(given: Any) -> DType:
    return known_dtype(given.dtype if hasattr(given, "spec") or isinstance(given, (np.ndarray, np.generic)) else given)
