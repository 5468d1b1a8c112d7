"""Argument handling of public functions: operands, axes, common dtypes, and sizes as values.

Operands may be values of any kind, NumPy arrays or numbers. Negative axes are normalised; primitives count axes from 0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._foreign import class_of
from tenferro_tensor._known import LinearForm
from tenferro_tensor._place import HOST, Place
from tenferro_tensor._primitive import Primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.calls import SCALARS, spec_of_raw, state
from tenferro_tensor.promotion import common_dtype, describe
from tenferro_tensor.tables import Table
from tenferro_tensor_core import (
    ArgumentError,
    AxisError,
    Dim,
    DimLike,
    DType,
    TenferroError,
    TracingError,
    as_size,
    ask,
    bool_,
    int64,
    likely,
)

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

T = TypeVar("T", bound=Any)

__all__ = [
    "AlongOps", "AxisOps", "alike", "axes_of", "axis_of", "converted", "copied", "count", "empty_extent", "extent",
    "host_elements", "kept", "known_integer", "linear_form", "number", "own", "positions", "require_concrete",
    "shape_of", "size_of", "truth", "value", "whole",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


def value(x: Any) -> Array:
    """Convert a NumPy array, a number or a size to a value.

    Args:
        x: any operand.

    Returns:
        The value; `x` itself if it is one.

    Raises:
        ArgumentError: it is none of these.
    """
    if hasattr(x, "spec"):
        return x
    if x.__class__ in SCALARS or isinstance(x, (np.ndarray, np.generic)):
        return Primitive.adopt(x)
    if hasattr(x, "__dim__"):
        return x.value()
    raise ArgumentError(
        f"a {class_of(x)} is neither a tensor, a NumPy array nor a number; make it one with asarray()",
        given=type(x).__name__,
    )


def own(host: np.ndarray[Any, Any], place: Place) -> Array:
    """A tensor for a host array that tenferro has just created; nothing is checked or copied.

    Args:
        host: host array.
        place: place of the result.

    Returns:
        The tensor.
    """
    if place is HOST:
        return state.tensor.wrap(host, spec_of_raw(host))
    if place.on_host:
        return state.tensor.wrap(host, Spec(host.shape, host.dtype, place))
    return Primitive.adopt(host, device=place.device)


def copied(x: Any, y: T, copy: bool | None) -> T:
    """Apply the argument `copy` to `y`, which is `x`, perhaps in another dtype or memory space.

    Args:
        x: the original.
        y: the result.
        copy: True for a copy, False to forbid one, None for either.

    Returns:
        `y`, or a copy of it.

    Raises:
        ArgumentError: `copy` is False, but memory is not shared.
    """
    if copy is None:
        return y
    fresh = y.spec.dtype != x.spec.dtype or y.spec.place.memory_space is not x.spec.place.memory_space
    if copy:
        return y if fresh else y._copied()
    if fresh:
        raise ArgumentError(f"{x.spec!r} cannot become {y.spec!r} without a copy, which copy=False forbids")
    return y


def truth(x: Any) -> Any:
    """Convert numbers to booleans by comparison with 0.

    Args:
        x: any operand.

    Returns:
        A boolean value.
    """
    if x.__class__ is bool:
        return x
    x = value(x)
    return x if x.spec.dtype is bool_ else catalog.ne(x, 0)


class _Conversions(Table):
    """Conversion ops by target dtype."""

    def __missing__(self, dtype: DType) -> Any:
        return self.remember(dtype, catalog.convert.op(dtype=dtype))


_CONVERT: Final = _Conversions("convert")


def converted(x: T, dtype: DType) -> T:
    """Convert a value to a dtype without the checks of `astype`.

    Args:
        x: value.
        dtype: the dtype.

    Returns:
        The value; `x` itself if it has that dtype.
    """
    return x if x.spec.dtype == dtype else _CONVERT[dtype](x)


def alike(*xs: Any) -> list[Any]:
    """Convert operands to their promoted dtype; Python numbers are weakly typed.

    Args:
        xs: operands.

    Returns:
        A list of values.
    """
    dtype = common_dtype(list(describe(tuple([x if x.__class__ in SCALARS else value(x) for x in xs]))))
    return [_number(x, dtype, xs) if x.__class__ in SCALARS else converted(value(x), dtype) for x in xs]


def _number(x: Any, dtype: DType, beside: Sequence[Any]) -> Any:
    place = next((v.spec.place for v in beside if hasattr(v, "spec")), HOST)
    try:
        host = np.asarray(x, dtype)
    except OverflowError as cause:
        raise ArgumentError(
            f"{x} does not fit {dtype.name}, the dtype of the arrays beside it; convert them to a wider dtype", value=x
        ) from cause
    return own(host, place)


def whole(name: str, what: str, n: Any) -> int:
    """Check an integer argument.

    Args:
        name: name of the function, for errors.
        what: description of the argument, for errors.
        n: the argument.

    Returns:
        A Python integer.

    Raises:
        ArgumentError: it is not an integer.
    """
    try:
        return int(operator.index(n))
    except TypeError as cause:
        if isinstance(cause, TenferroError):  # a traced integer raises its own error
            raise
        raise ArgumentError(f"{name} takes an integer as {what}, got {n!r}", function=name) from None


def size_of(name: str, what: str, n: Any) -> DimLike:
    """Check an integer argument that may be a symbolic size.

    Args:
        name: name of the function, for errors.
        what: description of the argument, for errors.
        n: the argument.

    Returns:
        An integer or a `Dim`.

    Raises:
        ArgumentError: it is neither.
    """
    n = as_size(n)
    return n if isinstance(n, Dim) else whole(name, what, n)


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """Normalise an axis.

    Args:
        name: name of the function, for errors.
        axis: the axis; negative ones count from the end.
        ndim: number of axes.

    Returns:
        The axis, counted from 0.

    Raises:
        AxisError: it is out of range.
    """
    i = whole(name, "axis", axis)
    if not -ndim <= i < ndim:
        seen = f"its axes go from {-ndim} to {ndim - 1}" if ndim else "it has no axes"
        raise AxisError(f"{name}: axis {i} is out of range for an array with {ndim} axes; {seen}", axis=i, ndim=ndim)
    return i % ndim


def axes_of(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Normalise axes.

    Args:
        name: name of the function, for errors.
        axis: axis, axes, or None for all.
        ndim: number of axes.

    Returns:
        Distinct axes, counted from 0.

    Raises:
        AxisError: an axis is out of range or repeated.
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (axis_of(name, axis, ndim),)
    axes = tuple([axis_of(name, a, ndim) for a in axis])
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: axis {tuple(axis)} names an axis twice; give each axis once", axes=axes)
    return axes


def shape_of(shape: Any) -> tuple[DimLike, ...]:
    """Normalise a shape.

    Args:
        shape: one extent, or a sequence of them.

    Returns:
        A tuple of integers and `Dim`s.

    Raises:
        ArgumentError: an extent is not an integer.
    """
    if (hasattr(shape, "spec") or isinstance(shape, np.ndarray)) and shape.ndim == 1:
        shape = shape.tolist()
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for d in extents:
        if d.__class__ is not int and not isinstance(d, Dim):
            return tuple([_extent(d) for d in extents])
    return extents


def _extent(d: Any) -> DimLike:
    d = as_size(d)
    if isinstance(d, Dim):
        return d
    try:
        return int(operator.index(d))
    except TypeError as cause:
        if isinstance(cause, TenferroError):
            raise
        fix = "; divide sizes with //" if isinstance(d, float) else ""
        raise ArgumentError(f"a shape consists of integers or symbolic sizes, not {d!r}{fix}", value=repr(d)) from None


class AxisOps(Table):
    """The ops of a reducing primitive by (number of axes, axis argument), so that a repeated call is one look-up."""

    def __init__(self, name: str, primitive: Primitive) -> None:
        super().__init__(name)
        self.primitive = primitive

    def __missing__(self, key: tuple[int, Any]) -> Any:
        return self.remember(key, self.primitive.op(axes=axes_of(self.name, key[1], key[0])))

    def reduce(self, x: Any, axis: Any, keepdims: bool) -> Array:
        """Reduce a value over axes.

        Args:
            x: value.
            axis: axis, axes, or None for all.
            keepdims: keep the reduced axes with extent 1.

        Returns:
            The reduced value.
        """
        spec = x.spec
        if axis is not None and axis.__class__ is not int:  # 1.0 and True would match the entry of 1
            axis = axes_of(self.name, axis, spec.ndim)
        op = self[spec.ndim, axis]
        out = op(x)
        return kept(out, spec, op.params["axes"]) if keepdims else out


class AlongOps(Table):
    """The ops of a primitive along one axis by (number of axes, axis argument), so that a repeated call is one look-up.

    Called with a value and the argument `axis`, it applies the primitive.
    """

    def __init__(self, name: str, primitive: Primitive, **params: Any) -> None:
        super().__init__(name)
        self.primitive: Primitive = primitive
        self.params: dict[str, Any] = params

    def __missing__(self, key: tuple[int, Any]) -> Any:
        return self.remember(key, self.primitive.op(axis=axis_of(self.name, key[1], key[0]), **self.params))

    def __call__(self, x: Any, axis: Any) -> Array:
        if axis.__class__ is not int:  # 1.0 and True would match the entry of 1
            axis = axis_of(self.name, axis, x.spec.ndim)
        return self[x.spec.ndim, axis](x)


_KEEPDIMS_OPS: Final = Table("axes that are kept")


def kept(reduced: T, spec: Spec, axes: Sequence[int]) -> T:
    """Restore the reduced axes of a value, with extent 1.

    Args:
        reduced: the reduced value.
        spec: spec of the operand.
        axes: the reduced axes.

    Returns:
        The reshaped value.
    """
    key = spec.shape, axes
    op = None if spec.symbolic else _KEEPDIMS_OPS.get(key)
    if op is None:
        op = catalog.reshape.op(shape=tuple([1 if i in axes else d for i, d in enumerate(spec.shape)]))
        if not spec.symbolic:
            _KEEPDIMS_OPS.remember(key, op)
    return op(reduced)


def count(x: Any, axes: Sequence[int]) -> Any:
    """Number of elements that a reduction combines.

    Args:
        x: operand.
        axes: the reduced axes.

    Returns:
        An integer; a 0-d value for symbolic extents.
    """
    return number(math.prod([x.spec.shape[a] for a in axes]), x.spec.place)


def extent(x: Any, axis: int) -> Any:
    """Extent of an axis as an operand.

    Args:
        x: value.
        axis: the axis.

    Returns:
        An integer; a 0-d value for a symbolic extent.
    """
    return number(x.spec.shape[axis], x.spec.place)


def empty_extent(d: DimLike) -> bool:
    """Whether an extent is 0; a symbolic one adds a guard only if its example is 0.

    Args:
        d: the extent.

    Returns:
        The answer.
    """
    return d == 0 or (likely(d, "==", 0) and ask(d, "==", 0))


def number(d: DimLike, place: Place) -> Any:
    """A size as an operand.

    Args:
        d: the size.
        place: place of the value.

    Returns:
        An integer; a 0-d value for a symbolic size.
    """
    return catalog.dim_value(size=d, place=place) if isinstance(d, Dim) else d


def positions(x: Any, axis: int) -> Array:
    """Indices along an axis, which broadcast with `x`.

    Args:
        x: value.
        axis: the axis.

    Returns:
        int64 value of the shape of `x`, with extent 1 on the other axes.
    """
    shape = tuple([d if a == axis else 1 for a, d in enumerate(x.spec.shape)])
    return catalog.iota(shape=shape, dtype=int64, axis=axis, place=x.spec.place)


def host_elements(x: Any) -> np.ndarray[Any, Any] | None:
    """The elements of a concrete value in main memory, without a transfer.

    Args:
        x: value, or host data.

    Returns:
        A host array, or None.
    """
    if not hasattr(x, "spec"):
        return np.asarray(x)
    if not x.spec.place.on_host:
        return None
    try:
        return x._concrete()
    except TracingError:
        return None


def known_integer(x: Any) -> Any:
    """The number of a 0-d integer value that is concrete and in main memory.

    Args:
        x: any operand.

    Returns:
        The integer; any other operand itself.
    """
    if not hasattr(x, "spec") or x.spec.ndim or x.spec.dtype.kind not in "iu":
        return x
    host = host_elements(x)
    return x if host is None else int(host)


def linear_form(x: Any) -> LinearForm | None:
    """An integer operand as a constant plus multiples of program variables.

    Args:
        x: integer, size or 0-d integer value.

    Returns:
        The form, or None if it is unknown.
    """
    x = as_size(x)
    if not hasattr(x, "spec"):
        return LinearForm({}, x if isinstance(x, Dim) else operator.index(x))
    return None if x.spec.ndim or x.spec.dtype.kind not in "iu" else x._linear_form()


def require_concrete(x: Any, name: str, way_out: str, *, what: str = "size") -> None:
    """Check that the elements that determine the size of a result are known.

    Args:
        x: value.
        name: name of the function, for errors.
        way_out: alternative, for the error.
        what: the unknown property, for the error.

    Raises:
        TracingError: they are not known while tracing or under vmap.
    """
    try:
        x._concrete()
    except TracingError as cause:
        raise TracingError(
            f"{name} has a result whose {what} depends on the elements, which are not known while tracing or under "
            f"vmap; {way_out}",
            function=name,
        ) from cause
