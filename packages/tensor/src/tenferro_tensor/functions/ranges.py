"""Arrays from ranges on logarithmic scales, functions of indices, buffers and iterables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor.calls import SCALARS
from tenferro_tensor.functions._floating import floating
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.creation import asarray, linspace
from tenferro_tensor.functions.dtypes import astype
from tenferro_tensor.functions.index_grids import indices
from tenferro_tensor.functions.manipulation import moveaxis
from tenferro_tensor.operands import alike, axis_of, host_elements, number, positions, whole
from tenferro_tensor.promotion import broadcast_shapes
from tenferro_tensor_core import ArgumentError, HostAdapterError
from tenferro_tensor_core import dtype as known_dtype

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["copy", "frombuffer", "fromfunction", "fromiter", "geomspace", "logspace"]


def __dir__() -> list[str]:
    return __all__.copy()


def copy(x: Any, /) -> Array:
    """Copy an array into its own memory.

    Args:
        x: array of any shape and dtype.

    Returns:
        Array of the shape and dtype of `x`.

    >>> tr.copy(tr.asarray([1, 2]))
    Tensor([1, 2])
    """
    return asarray(x, copy=True)


def _spaced(name: str, start: Any, stop: Any, num: Any, endpoint: bool) -> tuple[Any, Any, Any]:
    """Steps from 0 to 1 along a new first axis, which broadcast with the ends, and both ends."""
    start, stop = map(floating, alike(*[b if b.__class__ in SCALARS else listed(b) for b in (start, stop)]))
    shape = broadcast_shapes(start.spec.shape, stop.spec.shape)
    steps = linspace(0.0, 1.0, num, endpoint=endpoint, device=start.spec.place.device)
    return catalog.reshape(steps, shape=(*steps.spec.shape, *(1,) * len(shape))), start, stop


def _placed(name: str, x: Any, axis: int, dtype: Any) -> Any:
    axis = axis_of(name, axis, x.spec.ndim)
    x = moveaxis(x, 0, axis) if axis else x
    return x if dtype is None else astype(x, dtype, copy=False)


def logspace(
    start: Any, /, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Array:
    """Numbers ``base**start`` to ``base**stop`` with evenly spaced exponents.

    The bounds and the base may be arrays, with respect to which the result is differentiable.

    Args:
        start: first exponent.
        stop: last exponent; both broadcast.
        num: number of elements, at least 0.
        endpoint: include `stop`.
        base: the base.
        dtype: dtype of the result; by default floating point.
        axis: position of the new axis.

    Returns:
        Array with a new axis of extent `num`.

    Raises:
        ArgumentError: `num` is negative.
        AxisError: the axis is out of range.

    See also:
        `geomspace`, which takes the bounds themselves.

    >>> tr.logspace(0, 2, 3)
    Tensor([  1.,  10., 100.])
    """
    t, first, last = _spaced("logspace", start, stop, num, endpoint)
    exponents = catalog.add(catalog.mul(catalog.sub(1.0, t), first), catalog.mul(t, last))
    base = base if base.__class__ in (int, float, complex) else listed(base)
    out = catalog.pow(float(base) if base.__class__ is int else base, exponents)
    wide = base.__class__ in SCALARS or base.spec.dtype == first.spec.dtype
    return _placed("logspace", out, axis, first.spec.dtype if dtype is None and wide else dtype)


def geomspace(
    start: Any, /, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Array:
    """Numbers from `start` to `stop` with a constant ratio.

    The bounds may be arrays, with respect to which the result is differentiable. Complex numbers are on a logarithmic
    spiral.

    Args:
        start: first number.
        stop: last number; both broadcast.
        num: number of elements, at least 0.
        endpoint: include `stop`.
        dtype: dtype of the result; by default floating point.
        axis: position of the new axis.

    Returns:
        Array with a new axis of extent `num`.

    Raises:
        ArgumentError: a bound is known to be 0, or `num` is negative.
        AxisError: the axis is out of range.

    See also:
        `logspace`, which takes exponents.

    >>> tr.geomspace(1, 1000, 4)
    Tensor([   1.,   10.,  100., 1000.])
    """
    t, first, last = _spaced("geomspace", start, stop, num, endpoint)
    for bound in (first, last):
        known = host_elements(bound)
        if known is not None and not known.all():
            raise ArgumentError("geomspace cannot start or end at 0, which no constant factor leads to or from")
    ratio = catalog.div(last, first)
    power = catalog.exp(catalog.mul(t, catalog.log(ratio)))
    out = catalog.mul(first, power)
    if endpoint:  # make the last element exact, like the first
        n = out.spec.shape[0]
        at = positions(out, 0)
        last_place = n - 1 if isinstance(n, int) else number(n - 1, at.spec.place)
        final = catalog.bitwise_and(catalog.eq(at, last_place), catalog.gt(at, 0))
        out = catalog.select(final, last, out)
    return _placed("geomspace", out, axis, dtype)


def fromfunction(function: Callable[..., Any], shape: Any, /, *, dtype: Any = float, **kwargs: Any) -> Array:
    """Values of a function of indices, called once with the indices of all elements.

    Args:
        function: takes as many arrays as the shape has axes, each of that shape.
        shape: extents of the array.
        dtype: dtype of the indices.
        kwargs: passed to the function.

    Returns:
        The result of the function.

    >>> tr.fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int)
    Tensor([[ 0,  1],
            [10, 11]])
    """
    return function(*list(indices(shape, dtype=dtype)), **kwargs)


def frombuffer(buffer: Any, /, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """Vector of the numbers whose bytes are in a buffer; they are copied.

    Args:
        buffer: bytes, or an object with the buffer protocol.
        dtype: dtype of the numbers.
        count: how many to read; -1 for all.
        offset: number of bytes to skip.

    Returns:
        Vector of the given dtype.

    Raises:
        HostAdapterError: the buffer is too short, or its length is not a multiple of the element size.

    >>> tr.frombuffer(bytes([1, 2, 3]), dtype="uint8")
    Tensor([1, 2, 3], dtype=uint8)
    """
    try:
        host = np.frombuffer(buffer, known_dtype(dtype), whole("frombuffer", "count", count), offset)
    except (TypeError, ValueError, BufferError) as cause:
        raise HostAdapterError(f"frombuffer: {cause}; check dtype, count and offset") from cause
    return asarray(host, copy=True)


def fromiter(iterable: Iterable[Any], /, dtype: Any, count: int = -1) -> Array:
    """Vector of the numbers that an iterable yields.

    Args:
        iterable: yields numbers.
        dtype: dtype of the result.
        count: how many to take; -1 for all.

    Returns:
        Vector of the given dtype.

    Raises:
        HostAdapterError: there are fewer than `count`, or a number does not fit the dtype.

    >>> tr.fromiter((i * i for i in range(4)), dtype="int64")
    Tensor([0, 1, 4, 9])
    """
    try:
        return asarray(np.fromiter(iterable, known_dtype(dtype), whole("fromiter", "count", count)))
    except (TypeError, ValueError, OverflowError) as cause:
        raise HostAdapterError(f"fromiter: {cause}; check dtype and count") from cause
