"""NumPy's predicates on kinds of numbers, shapes and dtypes."""

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


def __dir__() -> list[str]:
    return __all__.copy()


def iscomplex(x: Any, /) -> Array:
    """Whether elements have a nonzero imaginary part.

    Args:
        x: array of any shape and dtype.

    Returns:
        Boolean array of the shape of `x`.

    >>> tr.iscomplex(tr.asarray([1 + 0j, 2j]))
    Tensor([False,  True])
    """
    return catalog.ne(catalog.imag(listed(x)), 0)


def isreal(x: Any, /) -> Array:
    """Whether elements have a zero imaginary part.

    Args:
        x: array of any shape and dtype.

    Returns:
        Boolean array of the shape of `x`.

    >>> tr.isreal(tr.asarray([1 + 0j, 2j]))
    Tensor([ True, False])
    """
    return catalog.eq(catalog.imag(listed(x)), 0)


def iscomplexobj(x: Any, /) -> bool:
    """Whether the dtype is complex.

    Args:
        x: array or number.

    Returns:
        A Python bool, regardless of the elements.

    >>> tr.iscomplexobj(tr.asarray([1 + 0j]))
    True
    """
    return bool(_dtype_of(x).kind == "c")


def isrealobj(x: Any, /) -> bool:
    """Whether the dtype is not complex.

    Args:
        x: array or number.

    Returns:
        A Python bool, regardless of the elements.

    >>> tr.isrealobj(tr.asarray([1 + 0j]))
    False
    """
    return not iscomplexobj(x)


def isneginf(x: Any, /) -> Array:
    """Whether elements are minus infinity.

    Args:
        x: real array of any shape.

    Returns:
        Boolean array of the shape of `x`.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.isneginf(tr.asarray([float("-inf"), 1.0]))
    Tensor([ True, False])
    """
    x = _ordered("isneginf", x)
    return catalog.bitwise_and(catalog.is_inf(x), catalog.lt(x, 0))


def isposinf(x: Any, /) -> Array:
    """Whether elements are plus infinity.

    Args:
        x: real array of any shape.

    Returns:
        Boolean array of the shape of `x`.

    Raises:
        DTypeError: `x` is complex.

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
    """Whether `x` is a single number: a Python or NumPy number, or an array without axes.

    Args:
        x: any object.

    Returns:
        A Python bool.

    >>> tr.isscalar(3.0), tr.isscalar(tr.asarray(3.0)), tr.isscalar(tr.asarray([3.0]))
    (True, True, False)
    """
    return not x.spec.ndim if hasattr(x, "spec") else bool(np.isscalar(x))


def iterable(x: Any, /) -> bool:
    """Whether `x` can be iterated over: an array with an axis, or another collection.

    Args:
        x: any object.

    Returns:
        A Python bool.

    >>> tr.iterable(tr.zeros(2)), tr.iterable(tr.asarray(1.0))
    (True, False)
    """
    return bool(x.spec.ndim) if hasattr(x, "spec") else bool(np.iterable(x))


def ndim(x: Any, /) -> int:
    """Number of axes.

    Args:
        x: array, number or nested sequences.

    Returns:
        A Python integer.

    >>> tr.ndim(tr.zeros((2, 3)))
    2
    """
    return int(x.ndim) if hasattr(x, "ndim") else int(np.ndim(x))


def shape(x: Any, /) -> tuple[int, ...]:
    """Extents of the axes.

    Args:
        x: array, number or nested sequences.

    Returns:
        A tuple of integers and sizes.

    >>> tr.shape(tr.zeros((2, 3)))
    (2, 3)
    """
    return tuple(x.shape) if hasattr(x, "shape") else tuple(np.shape(x))


def size(x: Any, /, axis: Any = None) -> int:
    """Number of elements, or product of the extents of some axes.

    Args:
        x: array, number or nested sequences.
        axis: axis or axes; by default all.

    Returns:
        An integer or a size.

    Raises:
        AxisError: an axis is out of range or repeated.

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
    """Whether a dtype is of a kind.

    `isdtype` asks the same in the words of the standard.

    Args:
        dtype: the dtype, or a name of it.
        kind: an abstract class of NumPy such as ``np.floating``, or a dtype.

    Returns:
        A Python bool.

    See also:
        `isdtype`, of the Array API.

    >>> tr.issubdtype(tr.float32, np.floating), tr.issubdtype(tr.float32, tr.float64)
    (True, False)
    """
    dtype = known_dtype(dtype)
    if isinstance(kind, type) and kind in _ABSTRACT:
        return isdtype(dtype, _ABSTRACT[kind])
    return bool(dtype == known_dtype(kind))


def promote_types(type1: Any, type2: Any, /) -> DType:
    """Common dtype of two dtypes.

    Args:
        type1, type2: dtypes, or names of them.

    Returns:
        The promoted dtype.

    See also:
        `result_type`, for any number of arrays and dtypes.

    >>> tr.promote_types(tr.float32, tr.int64)
    dtype('float64')
    """
    return result_type(known_dtype(type1), known_dtype(type2))


def real_if_close(x: Any, /, tol: float = 100) -> Array:
    """Real part if all imaginary parts are nearly 0, otherwise the array itself.

    Args:
        x: array of any shape and dtype.
        tol: bound of the imaginary parts; in units of the machine epsilon if greater than 1.

    Returns:
        Array of the shape of `x`, real or complex.

    Raises:
        TracingError: the elements, and with them the dtype of the result, are unknown while tracing.

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
