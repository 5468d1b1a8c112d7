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


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """`x` in another dtype, as the Array API standard defines it: everything but complex to real is allowed.

    The result has memory of its own; with ``copy=False`` it is `x` itself where dtype and device are those of `x`.

    Raises:
        DTypeError: from complex to real; `real`, `imag` and `cast` say what is meant.

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
    """`x` in another dtype, refused where kind or range would be lost.

    Raises:
        DTypeError: the step is not upwards in the promotion lattice.

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
    """`x` in another dtype, whatever is lost: truncation to integers, the real part of complex numbers.

    >>> tr.cast(tr.asarray([1.5 + 2j]), tr.float64)
    Tensor([1.5])
    """
    x = value(x)
    return apart(x, converted(x, known_dtype(dtype)))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion leads from a dtype (or from that of an array) to another: kind and range are kept.

    >>> tr.can_cast(tr.int32, tr.float64), tr.can_cast(tr.float64, tr.float32)
    (True, False)
    """
    return can_convert(_dtype_of(from_), known_dtype(to))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, a kind name such as ``"real floating"``, or a tuple of both.

    >>> tr.isdtype(tr.float32, "real floating")
    True
    """
    return _isdtype(dtype, kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype in which arrays, dtypes and (weak) Python numbers meet.

    >>> tr.result_type(tr.float32, 1.0), tr.result_type(tr.int64, tr.float32)
    (dtype('float32'), dtype('float64'))
    """
    return _result_type(*[a.dtype if hasattr(a, "spec") else a for a in arrays_and_dtypes])


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a floating point dtype (or of that of an array); of complex dtypes those of the parts.

    Raises:
        DTypeError: the dtype is not floating point.

    >>> tr.finfo(tr.float32).bits, tr.finfo(tr.complex128).dtype
    (32, dtype('float64'))
    """
    return _finfo(_dtype_of(type))


def iinfo(type: Any, /) -> IntLimits:
    """Limits of an integer dtype (or of that of an array).

    Raises:
        DTypeError: the dtype is not an integer.

    >>> tr.iinfo(tr.int8).max
    127
    """
    return _iinfo(_dtype_of(type))


def _dtype_of(given: Any) -> DType:
    return known_dtype(given.dtype if hasattr(given, "spec") or isinstance(given, (np.ndarray, np.generic)) else given)
