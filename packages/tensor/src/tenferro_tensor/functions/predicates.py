"""Questions about kinds of numbers, shapes and dtypes that NumPy has functions for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.dtypes import result_type
from tenferro_tensor.operands import axes_of, require_concrete
from tenferro_tensor_core import DType, DTypeError, isdtype
from tenferro_tensor_core import dtype as known_dtype

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "iscomplex", "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype", "iterable",
    "ndim", "promote_types", "real_if_close", "shape", "size",
]  # fmt: skip


def iscomplex(x: Any, /) -> Array:
    """Whether the imaginary part is not 0, element by element.

    >>> tr.iscomplex(tr.asarray([1 + 0j, 2j]))
    Tensor([False,  True])
    """
    return catalog.ne(catalog.imag(listed(x)), 0)


def isreal(x: Any, /) -> Array:
    """Whether the imaginary part is 0, element by element.

    >>> tr.isreal(tr.asarray([1 + 0j, 2j]))
    Tensor([ True, False])
    """
    return catalog.eq(catalog.imag(listed(x)), 0)


def iscomplexobj(x: Any, /) -> bool:
    """Whether the dtype is complex, whatever the elements are.

    >>> tr.iscomplexobj(tr.asarray([1 + 0j]))
    True
    """
    return bool(_dtype_of(x).kind == "c")


def isrealobj(x: Any, /) -> bool:
    """Whether the dtype is not complex, whatever the elements are.

    >>> tr.isrealobj(tr.asarray([1 + 0j]))
    False
    """
    return not iscomplexobj(x)


def isneginf(x: Any, /) -> Array:
    """Whether a real number is minus infinity.

    >>> tr.isneginf(tr.asarray([float("-inf"), 1.0]))
    Tensor([ True, False])
    """
    x = _ordered("isneginf", x)
    return catalog.bitwise_and(catalog.is_inf(x), catalog.lt(x, 0))


def isposinf(x: Any, /) -> Array:
    """Whether a real number is plus infinity.

    >>> tr.isposinf(tr.asarray([float("inf"), 1.0]))
    Tensor([ True, False])
    """
    x = _ordered("isposinf", x)
    return catalog.bitwise_and(catalog.is_inf(x), catalog.gt(x, 0))


def _ordered(name: str, x: Any) -> Any:
    x = listed(x)
    if x.spec.cplx:
        raise DTypeError(f"{name} is about real numbers, got {x.spec!r}; take real(x) or imag(x) first")
    return x


def isscalar(x: Any, /) -> bool:
    """Whether `x` is a single number: a number of Python or NumPy, or a value without axes.

    >>> tr.isscalar(3.0), tr.isscalar(tr.asarray(3.0)), tr.isscalar(tr.asarray([3.0]))
    (True, True, False)
    """
    return not x.spec.ndim if hasattr(x, "spec") else bool(np.isscalar(x))


def iterable(x: Any, /) -> bool:
    """Whether a loop over `x` is possible: whether it has an axis, or is another collection.

    >>> tr.iterable(tr.zeros(2)), tr.iterable(tr.asarray(1.0))
    (True, False)
    """
    return bool(x.spec.ndim) if hasattr(x, "spec") else bool(np.iterable(x))


def ndim(x: Any, /) -> int:
    """Number of axes, also of a number or of nested sequences.

    >>> tr.ndim(tr.zeros((2, 3)))
    2
    """
    return int(x.ndim) if hasattr(x, "ndim") else int(np.ndim(x))


def shape(x: Any, /) -> tuple[Any, ...]:
    """Extents of the axes, also of a number or of nested sequences.

    >>> tr.shape(tr.zeros((2, 3)))
    (2, 3)
    """
    return tuple(x.shape) if hasattr(x, "shape") else tuple(np.shape(x))


def size(x: Any, /, axis: Any = None) -> Any:
    """Number of elements, or the product of the extents of some axes.

    >>> tr.size(tr.zeros((2, 3))), tr.size(tr.zeros((2, 3)), 1)
    (6, 3)
    """
    extents = shape(x)
    n: Any = 1
    for a in axes_of("size", axis, len(extents)):
        n = n * extents[a]
    return n


_ABSTRACT: Final = {
    np.generic: ("bool", "numeric"),
    np.number: ("numeric",),
    np.inexact: ("real floating", "complex floating"),
    np.floating: ("real floating",),
    np.complexfloating: ("complex floating",),
    np.integer: ("integral",),
    np.signedinteger: ("signed integer",),
    np.unsignedinteger: ("unsigned integer",),
}


def issubdtype(dtype: Any, kind: Any, /) -> bool:
    """Whether a dtype is of a kind: an abstract type of NumPy such as ``np.floating``, or a dtype.

    `isdtype` asks the same in the words of the standard.

    >>> tr.issubdtype(tr.float32, np.floating), tr.issubdtype(tr.float32, tr.float64)
    (True, False)
    """
    dtype = known_dtype(dtype)
    if isinstance(kind, type) and kind in _ABSTRACT:
        return isdtype(dtype, _ABSTRACT[kind])
    return bool(dtype == known_dtype(kind))


def promote_types(type1: Any, type2: Any, /) -> DType:
    """The dtype in which two dtypes meet.

    >>> tr.promote_types(tr.float32, tr.int64)
    dtype('float64')
    """
    return result_type(known_dtype(type1), known_dtype(type2))


def real_if_close(x: Any, /, tol: float = 100) -> Array:
    """The real part of complex numbers whose imaginary parts are all nearly 0, else the numbers themselves.

    Args:
        x: the array.
        tol: the bound of the imaginary parts, in units of the machine epsilon if it is greater than 1.

    Raises:
        TracingError: the elements are not known while tracing, hence the dtype of the result neither.

    >>> tr.real_if_close(tr.asarray([2 + 1e-17j]))
    Tensor([2.])
    """
    x = listed(x)
    if not x.spec.cplx:
        return x[...]
    require_concrete(x, "real_if_close", "take real(x) where that is meant", what="dtype")
    bound = float(tol * np.finfo(x.spec.dtype).eps if tol > 1 else tol)
    close = catalog.reduce_all(catalog.lt(catalog.abs(catalog.imag(x)), bound), axes=tuple(range(x.spec.ndim)))
    return catalog.real(x) if bool(close) else x[...]


def _dtype_of(x: Any) -> Any:
    if x.__class__ in SCALARS:
        return np.dtype(x.__class__)
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
