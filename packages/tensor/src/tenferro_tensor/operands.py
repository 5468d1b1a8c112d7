"""How public functions take their arguments: operands, axes, common dtypes, and sizes as values.

Operands may be values of any kind, NumPy arrays and numbers. Axes may be negative; primitives want them counted from 0.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tenferro_tensor import catalog
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

__all__ = [
    "AlongOps", "AxisOps", "alike", "axes_of", "axis_of", "converted", "copied", "count", "empty_extent", "extent",
    "host_elements", "kept", "known_integer", "linear_form", "number", "own", "positions", "require_concrete",
    "shape_of", "size_of", "truth", "value", "whole",
]  # fmt: skip


def value(x: Any) -> Any:
    """`x` as a value: a NumPy array or a number becomes a concrete tensor."""
    if hasattr(x, "spec"):
        return x
    if x.__class__ in SCALARS or isinstance(x, (np.ndarray, np.generic)):
        return Primitive.adopt(x)
    if hasattr(x, "__dim__"):
        return x.value()
    raise ArgumentError(
        f"a {type(x).__name__} is neither a tensor, a NumPy array nor a number; make it one with asarray()",
        given=type(x).__name__,
    )


def own(host: np.ndarray[Any, Any], place: Place) -> Any:
    """A tensor of a host array that tenferro itself has just made: nothing is checked or copied."""
    if place is HOST:
        return state.tensor.wrap(host, spec_of_raw(host))
    if place.on_host:
        return state.tensor.wrap(host, Spec(host.shape, host.dtype, place))
    return Primitive.adopt(host, device=place.device)


def copied(x: Any, y: Any, copy: bool | None) -> Any:
    """`y`, which is `x` perhaps in another dtype or memory: in memory of its own where `copy` is True.

    Raises:
        ArgumentError: `copy` is False, but the memory is not that of `x`.
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
    """Booleans as they are; numbers compared with 0."""
    if x.__class__ is bool:
        return x
    x = value(x)
    return x if x.spec.dtype is bool_ else catalog.ne(x, 0)


class _Conversions(Table):
    """The op of a conversion by the dtype that it leads to."""

    def __missing__(self, dtype: DType) -> Any:
        return self.remember(dtype, catalog.convert.op(dtype=dtype))


_CONVERT: Final = _Conversions("convert")


def converted(x: Any, dtype: DType) -> Any:
    """A value converted to a dtype without the checks of `astype`; the value itself if it has that dtype."""
    return x if x.spec.dtype == dtype else _CONVERT[dtype](x)


def alike(*xs: Any) -> list[Any]:
    """Values in the dtype that the operands promote to; Python numbers among them are weak."""
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
    """An integer argument."""
    try:
        return int(operator.index(n))
    except TypeError as cause:
        if isinstance(cause, TenferroError):  # a traced integer says itself why it cannot be one
            raise
        raise ArgumentError(f"{name} takes an integer as {what}, got {n!r}", function=name) from None


def size_of(name: str, what: str, n: Any) -> DimLike:
    """An integer argument that may be a symbolic size."""
    n = as_size(n)
    return n if isinstance(n, Dim) else whole(name, what, n)


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """One axis, counted from 0."""
    i = whole(name, "axis", axis)
    if not -ndim <= i < ndim:
        seen = f"its axes go from {-ndim} to {ndim - 1}" if ndim else "it has no axes"
        raise AxisError(f"{name}: axis {i} is out of range for an array with {ndim} axes; {seen}", axis=i, ndim=ndim)
    return i % ndim


def axes_of(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Distinct axes, counted from 0; ``None`` means all of them."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (axis_of(name, axis, ndim),)
    axes = tuple([axis_of(name, a, ndim) for a in axis])
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: axis {tuple(axis)} names an axis twice; give each axis once", axes=axes)
    return axes


def shape_of(shape: Any) -> tuple[DimLike, ...]:
    """A shape given as one extent or as a sequence of them."""
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
        raise ArgumentError(f"a shape holds integers or symbolic sizes, not {d!r}{fix}", value=repr(d)) from None


class AxisOps(Table):
    """The ops of a reducing primitive by (number of axes, axis argument): one look-up finds a known one."""

    def __init__(self, name: str, primitive: Primitive) -> None:
        super().__init__(name)
        self.primitive = primitive

    def __missing__(self, key: tuple[int, Any]) -> Any:
        return self.remember(key, self.primitive.op(axes=axes_of(self.name, key[1], key[0])))

    def reduce(self, x: Any, axis: Any, keepdims: bool) -> Any:
        """Reduce `x` over the axes that the argument `axis` names."""
        spec = x.spec
        if axis is not None and axis.__class__ is not int:  # 1.0 and True would find the entry of 1
            axis = axes_of(self.name, axis, spec.ndim)
        op = self[spec.ndim, axis]
        out = op(x)
        return kept(out, spec, op.params["axes"]) if keepdims else out


class AlongOps(Table):
    """The ops of a primitive along one axis by (number of axes, axis argument): one look-up finds a known one.

    Called with a value and the argument `axis`, it applies the primitive.
    """

    def __init__(self, name: str, primitive: Primitive, **params: Any) -> None:
        super().__init__(name)
        self.primitive, self.params = primitive, params

    def __missing__(self, key: tuple[int, Any]) -> Any:
        return self.remember(key, self.primitive.op(axis=axis_of(self.name, key[1], key[0]), **self.params))

    def __call__(self, x: Any, axis: Any) -> Any:
        if axis.__class__ is not int:  # 1.0 and True would find the entry of 1
            axis = axis_of(self.name, axis, x.spec.ndim)
        return self[x.spec.ndim, axis](x)


_KEPT: Final = Table("axes that are kept")


def kept(reduced: Any, spec: Spec, axes: Sequence[int]) -> Any:
    """A reduced value with the reduced axes put back, with extent 1."""
    key = spec.shape, axes
    op = None if spec.symbolic else _KEPT.get(key)
    if op is None:
        op = catalog.reshape.op(shape=tuple([1 if i in axes else d for i, d in enumerate(spec.shape)]))
        if not spec.symbolic:
            _KEPT.remember(key, op)
    return op(reduced)


def count(x: Any, axes: Sequence[int]) -> Any:
    """Number of elements that a reduction of `x` over `axes` combines: an integer, for open extents a 0-d value."""
    return number(math.prod([x.spec.shape[a] for a in axes]), x.spec.place)


def extent(x: Any, axis: int) -> Any:
    """Extent of an axis as an operand: an integer, or a 0-d value for a symbolic extent."""
    return number(x.spec.shape[axis], x.spec.place)


def empty_extent(d: DimLike) -> bool:
    """Whether an extent is 0; a symbolic one adds a guard only if its example is 0."""
    return d == 0 or (likely(d, "==", 0) and ask(d, "==", 0))


def number(d: DimLike, place: Place) -> Any:
    """A size as an operand: an integer, or a 0-d value for a symbolic size."""
    return catalog.dim_value(size=d, place=place) if isinstance(d, Dim) else d


def positions(x: Any, axis: int) -> Any:
    """Own index along `axis`: integers of the shape of `x` with extents 1 on the other axes."""
    shape = tuple([d if a == axis else 1 for a, d in enumerate(x.spec.shape)])
    return catalog.iota(shape=shape, dtype=int64, axis=axis, place=x.spec.place)


def host_elements(x: Any) -> np.ndarray[Any, Any] | None:
    """The elements of a value that is concrete and lies in main memory, without a transfer; else ``None``."""
    if not hasattr(x, "spec"):
        return np.asarray(x)
    if not x.spec.place.on_host:
        return None
    try:
        return x._concrete()  # type: ignore[no-any-return]
    except TracingError:
        return None


def known_integer(x: Any) -> Any:
    """A 0-d integer value as the integer, where its element is known without a transfer; anything else as it is."""
    if not hasattr(x, "spec") or x.spec.ndim or x.spec.dtype.kind not in "iu":
        return x
    host = host_elements(x)
    return x if host is None else int(host)


def linear_form(x: Any) -> LinearForm | None:
    """An integer, a size or a 0-d integer value as a constant plus multiples of variables, where that is known."""
    x = as_size(x)
    if not hasattr(x, "spec"):
        return LinearForm({}, x if isinstance(x, Dim) else operator.index(x))
    return None if x.spec.ndim or x.spec.dtype.kind not in "iu" else x._linear_form()


def require_concrete(x: Any, name: str, way_out: str, *, what: str = "size") -> None:
    """Raise where the size (or what else is said) of a result depends on elements that are not known yet."""
    try:
        x._concrete()
    except TracingError as cause:
        raise TracingError(
            f"{name} has a result whose {what} depends on the elements, which are not known while tracing or under "
            f"vmap; {way_out}",
            function=name,
        ) from cause
