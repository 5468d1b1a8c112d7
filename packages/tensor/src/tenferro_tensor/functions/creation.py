"""Arrays from shapes, ranges, numbers and foreign data.

``device`` is a name such as ``"cpu:0"`` or a `ComputeDevice`; by default, new arrays are placed by
the enclosing scope, else in main memory, and results of ``*_like`` functions at the place of their argument.
"""

from __future__ import annotations

import math
import sys
from numbers import Number
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._place import Place
from tenferro_tensor._primitive import Primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import get_backend, place_of
from tenferro_tensor.calls import SCALARS, state
from tenferro_tensor.direct import direct
from tenferro_tensor.dispatch import explicit
from tenferro_tensor.functions import _forms
from tenferro_tensor.functions.dtypes import astype
from tenferro_tensor.functions.joining import stack
from tenferro_tensor.functions.placement import to_device
from tenferro_tensor.operands import (
    converted,
    copied,
    known_integer,
    linear_form,
    number,
    own,
    positions,
    shape_of,
    size_of,
    value,
    whole,
)
from tenferro_tensor.origins import noted
from tenferro_tensor.promotion import keep_imaginary
from tenferro_tensor_core import (
    ArgumentError,
    Dim,
    DimLike,
    DType,
    DTypeError,
    ShapeError,
    as_size,
    ask,
    bool_,
    complex128,
    dim_max,
    float64,
    floordiv,
    int64,
    is_integer,
)
from tenferro_tensor_core import dtype as known_dtype
from tenferro_tensor_core import from_dlpack as _from_dlpack

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

_DLPACK_KINDS: Final = {2: "cuda", 13: "cuda", 10: "rocm"}
"""Kinds of accelerators by DLPack's device type."""

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return __all__.copy()


def asarray(obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Array:
    """Convert data to an array; arrays are returned as they are.

    Differentiated and traced values inside nested sequences are stacked, so that derivatives pass. Shared memory is
    copied once a derivative or a program depends on it.

    Args:
        obj: a number, nested sequences of numbers or arrays, a NumPy array, a buffer or a DLPack producer.
        dtype: dtype of the result; by default that of the data, float64 for Python floats.
        device: device to move the data to.
        copy: True always copies, False raises where a copy is needed, None copies only there.

    Returns:
        Array with the shape of the data.

    Raises:
        DTypeError: the data are not numbers, or they are complex and `dtype` is not.
        ArgumentError: sequences are ragged, or a copy is needed and `copy` is False.

    See also:
        `array`, which copies by default; `from_dlpack`.

    >>> tr.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if obj.__class__ is state.tensor and copy is True and dtype is None and device is None:
        return obj._copied()
    if hasattr(obj, "__dim__"):  # the conversion removes the weak type
        obj = catalog.convert(value(obj), dtype=int64)
    if hasattr(obj, "spec"):
        return copied(obj, _adapted(obj, dtype, device), copy)
    if isinstance(obj, (list, tuple)) and _holds_values(obj):
        return _adapted(_stacked(obj), dtype, device)
    if not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__") and not isinstance(obj, np.generic):
        return _adapted(from_dlpack(obj, copy=copy), dtype, device)
    return noted(Primitive.adopt(obj, dtype=dtype, device=device, copy=copy, share=True))


def _adapted(x: Any, dtype: Any, device: Any) -> Any:
    with explicit(device):
        x = x if device is None else to_device(x, device)
        return x if dtype is None else astype(x, dtype, copy=False)


def _holds_values(obj: Any) -> bool:
    return any(_holds_values(v) if isinstance(v, (list, tuple)) else getattr(v, "level", 0) > 0 for v in obj)


def _stacked(obj: Any) -> Any:
    return stack([_stacked(v) if isinstance(v, (list, tuple)) else v for v in obj])


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Import a DLPack producer, sharing its memory where possible.

    Data on a CUDA or ROCm device stay there; work on the result is ordered after the work that computes them.

    Args:
        x: an object with ``__dlpack__`` and ``__dlpack_device__``.
        device: device to move the data to.
        copy: True always copies, False raises where a copy is needed, None copies only there.

    Returns:
        Array of the shape and dtype of the data.

    Raises:
        HostAdapterError: the producer refuses, or a copy is needed and `copy` is False.
        BackendUnavailableError: the data are on an accelerator whose backend is not installed.
        DTypeError: the dtype is not supported.

    >>> tr.from_dlpack(np.asarray([1.0, 2.0]))
    Tensor([1., 2.])
    """
    if hasattr(x, "spec"):
        return copied(x, _adapted(x, None, device), copy)
    home = _accelerator_of(x)
    if home is not None:
        return _adapted(noted(_shared(x, home, copy)), None, device)
    return _adapted(noted(Primitive.adopt(_from_dlpack(x, copy=copy), share=True)), None, device)


def _accelerator_of(x: Any) -> str | None:
    """The name of the accelerator that holds a DLPack producer's data; None for other devices."""
    if not hasattr(x, "__dlpack_device__") or isinstance(x, np.ndarray):
        return None
    try:
        kind, number = map(int, x.__dlpack_device__())
    except Exception:
        return None  # reading the data raises the producer's own error
    return f"{_DLPACK_KINDS[kind]}:{number}" if kind in _DLPACK_KINDS else None


def _shared(x: Any, home: str, copy: bool | None) -> Any:
    place = place_of(home)
    raw = get_backend(place.device.kind).imported(x, copy=bool(copy))
    return state.tensor.wrap(raw, Spec(tuple(raw.shape), known_dtype(raw.dtype), place))


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Create an array filled with one value.

    Args:
        shape: extent, or tuple of extents.
        fill_value: a number or 0-d array.
        dtype: dtype of the result; by default that of `fill_value`.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Array of the given shape.

    Raises:
        ShapeError: `fill_value` has axes.
        ArgumentError: an extent is negative, or the value does not fit the dtype.

    >>> tr.full((2,), 7)
    Tensor([7, 7])
    """
    extents = shape_of(shape)
    place = place_of(device)
    fill_value = value(fill_value) if hasattr(fill_value, "__dim__") else fill_value
    if hasattr(fill_value, "spec"):
        x = fill_value if dtype is None else astype(fill_value, dtype, copy=False)
        if x.spec.ndim:
            raise ShapeError(f"full needs a fill_value without axes, got {x.spec!r}; broadcast it instead")
        with explicit(device):
            return catalog.broadcast_in_dim(x if device is None else to_device(x, device), shape=extents, dims=())
    goal = None if dtype is None else known_dtype(dtype)
    if any(isinstance(d, Dim) for d in extents) or not place.on_host:
        with explicit(device):
            return catalog.broadcast_in_dim(_constant((), fill_value, goal, place), shape=extents, dims=())
    return _constant(extents, fill_value, goal, place)


def _constant(shape: Any, fill: Any, dtype: DType | None, place: Place) -> Any:
    if dtype is None and fill.__class__ in SCALARS:
        dtype = {bool: bool_, int: int64, float: float64, complex: complex128}[fill.__class__]
    if dtype is not None and isinstance(fill, (complex, np.complexfloating)):
        keep_imaginary("full", np.asarray(fill).dtype, dtype)
    try:
        host = np.full(shape, fill, dtype)
    except (TypeError, ValueError, OverflowError) as cause:
        raise ArgumentError(
            f"cannot make an array of shape {shape!r} filled with {fill!r}: {cause}; give extents of at least 0 and "
            "a number that fits the dtype",
            shape=shape,
        ) from cause
    return noted(own(host, place))


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Create an array of zeros.

    Args:
        shape: extent, or tuple of extents.
        dtype: dtype of the result; float64 by default.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Array of the given shape.

    >>> tr.zeros(2)
    Tensor([0., 0.])
    """
    return full(shape, 0, dtype=float64 if dtype is None else dtype, device=device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Create an array of ones.

    Args:
        shape: extent, or tuple of extents.
        dtype: dtype of the result; float64 by default.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Array of the given shape.

    >>> tr.ones((1, 2))
    Tensor([[1., 1.]])
    """
    return full(shape, 1, dtype=float64 if dtype is None else dtype, device=device)


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Create an array with unspecified elements: zeros, since arrays are immutable.

    Args:
        shape: extent, or tuple of extents.
        dtype: dtype of the result; float64 by default.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Array of the given shape.

    >>> tr.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Create an array with the shape of another, filled with one value.

    Args:
        x: array of any shape and dtype.
        fill_value: a number or 0-d array.
        dtype: dtype of the result; by default that of `x`.
        device: device or its name; by default that of `x`.

    Returns:
        Array of the shape of `x`.

    >>> tr.full_like(tr.asarray([1.0, 2.0]), 7)
    Tensor([7., 7.])
    """
    x = value(x)
    dtype = x.spec.dtype if dtype is None else known_dtype(dtype)
    return full(x.spec.shape, fill_value, dtype=dtype, device=x.spec.place.device if device is None else device)


def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Create an array of zeros with the shape of another.

    Args:
        x: array of any shape and dtype.
        dtype: dtype of the result; by default that of `x`.
        device: device or its name; by default that of `x`.

    Returns:
        Array of the shape of `x`.

    >>> tr.zeros_like(tr.asarray([1, 2]))
    Tensor([0, 0])
    """
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Create an array of ones with the shape of another.

    Args:
        x: array of any shape and dtype.
        dtype: dtype of the result; by default that of `x`.
        device: device or its name; by default that of `x`.

    Returns:
        Array of the shape of `x`.

    >>> tr.ones_like(tr.asarray([1.5, 2.5]))
    Tensor([1., 1.])
    """
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Create an array with the shape of another and unspecified elements: zeros.

    Args:
        x: array of any shape and dtype.
        dtype: dtype of the result; by default that of `x`.
        device: device or its name; by default that of `x`.

    Returns:
        Array of the shape of `x`.

    >>> tr.empty_like(tr.asarray([1, 2])).shape
    (2,)
    """
    return zeros_like(x, dtype=dtype, device=device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> Array:
    """Numbers from `start` (included) to `stop` (excluded) with a constant step.

    Bounds may be traced integers. The extent is known where they differ by an integer or a size, as in ``arange(i, i +
    3)``; otherwise it is data-dependent.

    Args:
        start: first number; with `stop` left out, the numbers from 0 to `start`.
        stop: end of the range.
        step: difference of neighbours, not 0.
        dtype: dtype of the result; by default int64 for integer arguments, else float64.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Vector with ``ceil((stop - start) / step)`` elements.

    Raises:
        ArgumentError: the step is 0, or a bound is not a finite number.
        DTypeError: an argument is complex.

    See also:
        `linspace`, which takes the number of elements.

    >>> tr.arange(1, 10, 3)
    Tensor([1, 4, 7])
    """
    start, stop, step = map(as_size, (0, start, step) if stop is None else (start, stop, step))
    start, stop = known_integer(start), known_integer(stop)
    if any(hasattr(v, "spec") and not v.spec.ndim and is_integer(v.dtype) for v in (start, stop)):
        return _traced_range(start, stop, step, dtype, place_of(device))
    if dtype is None:
        given = (start, stop, step)
        whole = all(
            isinstance(v, (int, np.integer, Dim)) or (hasattr(v, "spec") and is_integer(v.dtype)) for v in given
        )
        dtype = int64 if whole else float64
    if any(isinstance(v, Dim) for v in (start, stop, step)):
        with explicit(device):
            return _open_range(start, stop, step, known_dtype(dtype), place_of(device))
    bounds: tuple[Any, ...] = (_plain(start), _plain(stop), _plain(step))
    if any(isinstance(b, (complex, np.complexfloating)) for b in bounds):
        raise DTypeError(f"arange counts real numbers, got arange({start}, {stop}, {step}); use linspace")
    if not all(map(math.isfinite, bounds)):
        raise ArgumentError(f"arange counts from and to finite numbers, got arange({start}, {stop}, {step})")
    if bounds[2] == 0:
        raise ArgumentError(f"arange needs a step other than 0, got arange({start}, {stop}, {step})", step=step)
    return noted(own(np.arange(*bounds, dtype=known_dtype(dtype)), place_of(device)))


def _open_range(start: Any, stop: Any, step: Any, dtype: DType, place: Place) -> Any:
    """A range whose bounds are integers or symbolic sizes."""
    start, stop, step = (size_of("arange", "bound beside a symbolic size", v) for v in (start, stop, step))
    if step.__class__ is int and step == 0:
        raise ArgumentError(f"arange needs a step other than 0, got arange({start}, {stop}, {step})", step=step)
    if ask(step, ">", 0):
        length = floordiv(dim_max(stop - start, 0) + (step - 1), step)
    else:
        length = floordiv(dim_max(start - stop, 0) + (-step - 1), -step)
    steps = catalog.iota(shape=(length,), dtype=int64, axis=0, place=place)
    return converted(catalog.add(catalog.mul(steps, number(step, place)), number(start, place)), dtype)


def _traced_range(start: Any, stop: Any, step: Any, dtype: Any, place: Place) -> Any:
    """A range whose bounds are 0-d integers known only at run time."""
    step = whole("arange", "step beside a traced bound", step)
    if not step:
        raise ArgumentError(f"arange needs a step other than 0, got {step=}", step=step)
    size = abs(step)
    first, last = linear_form(start), linear_form(stop)
    start, stop = (converted(b, int64) if hasattr(b, "spec") else number(b, place) for b in (start, stop))
    away = None if first is None or last is None else last.minus(first)
    length: DimLike
    if away is None:
        far, near = (stop, start) if step > 0 else (start, stop)
        distance = far if near.__class__ is int and near == 0 else catalog.sub(far, near)
        most = distance._interval().high
        count = distance if size == 1 else catalog.floor_divide(catalog.add(distance, size - 1), size)
        length = (count if distance._interval().at_least(0) else catalog.maximum(count, 0))._as_extent(
            None if most is None else floordiv(dim_max(most, 0) + (size - 1), size)
        )
    else:
        length = floordiv(dim_max(away if step > 0 else -away, 0) + (size - 1), size)
    steps = catalog.iota(shape=(length,), dtype=int64, axis=0, place=place)
    steps = steps if step == 1 else catalog.mul(steps, step)
    numbers = steps if start.__class__ is int and start == 0 else catalog.add(steps, start)
    return converted(numbers, int64 if dtype is None else known_dtype(dtype))


def _plain(x: Any) -> Any:
    """The bound as a number."""
    if hasattr(x, "spec") or (isinstance(x, np.ndarray) and x.size == 1):
        return x.item()
    if not isinstance(x, Number):
        raise ArgumentError(f"arange counts from, to and by single numbers, got {x!r}; pass 0-d values or scalars")
    return x


def linspace(
    start: Any, /, stop: Any, num: Any = 50, endpoint: bool = True, *, dtype: Any = None, device: Any = None
) -> Array:
    """Evenly spaced numbers from `start` to `stop`.

    The bounds may be 0-d arrays, with respect to which the result is differentiable.

    Args:
        start: first number.
        stop: last number.
        num: number of elements, at least 0.
        endpoint: include `stop`.
        dtype: dtype of the result; by default floating point.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Vector with `num` elements.

    Raises:
        ArgumentError: `num` is negative.

    See also:
        `arange`, `logspace` and `geomspace`.

    >>> tr.linspace(0.0, 1.0, 5)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    num = size_of("linspace", "num", num)
    if ask(num, "<", 0):
        raise ArgumentError(f"linspace makes num numbers, at least 0, got {num}", num=num)
    if isinstance(num, int) and num > sys.maxsize // 16:
        raise ShapeError(f"linspace cannot create {num} numbers, more than the address space", num=num)
    if hasattr(start, "spec") or hasattr(stop, "spec"):
        if device is None:
            device = _device_of(start, stop)
        with explicit(device):
            steps = linspace(0.0, 1.0, num, endpoint=endpoint, device=device)
            out = catalog.add(catalog.mul(catalog.sub(1.0, steps), start), catalog.mul(steps, stop))
            return out if dtype is None else astype(out, dtype, copy=False)
    goal = None if dtype is None else known_dtype(dtype)
    if goal is not None:
        keep_imaginary("linspace", np.result_type(start, stop), goal)
    if isinstance(num, Dim):
        with explicit(device):
            out = _open_linspace(start, stop, num, endpoint, place_of(device))
            return out if goal is None else astype(catalog.floor(out) if goal.kind in "iu" else out, goal, copy=False)
    return noted(own(np.linspace(start, stop, num, endpoint=endpoint, dtype=goal), place_of(device)))


def _device_of(*bounds: Any) -> Any:
    """The accelerator of the first bound that is on one; None if all bounds are in main memory."""
    places = [x.spec.place for x in bounds if hasattr(x, "spec")]
    return next((p.device for p in places if p.memory_space.kind != "host"), None)


def _open_linspace(start: Any, stop: Any, num: Dim, endpoint: bool, place: Place) -> Any:
    """NumPy's formula, bit for bit."""
    at = catalog.iota(shape=(num,), dtype=float64, axis=0, place=place)
    gaps = converted(number(dim_max(num - 1, 1) if endpoint else num, place), float64)
    out = catalog.add(catalog.mul(at, catalog.div(stop - start, gaps)), start)
    last = catalog.bitwise_and(catalog.eq(at, gaps), catalog.gt(at, 0))
    return catalog.select(last, stop, out) if endpoint else out


def eye(n_rows: Any, n_cols: Any = None, /, k: int = 0, dtype: Any = None, *, device: Any = None) -> Array:
    """Matrix with ones on one diagonal and zeros elsewhere.

    Args:
        n_rows: number of rows.
        n_cols: number of columns; by default `n_rows`.
        k: index of the diagonal; 0 is the main one, positive indices are above it.
        dtype: dtype of the result; float64 by default.
        device: device or its name; by default that of the enclosing scope, else the CPU.

    Returns:
        Array of shape (n_rows, n_cols).

    Raises:
        ArgumentError: an extent is negative.

    >>> tr.eye(2)
    Tensor([[1., 0.],
            [0., 1.]])
    """
    dtype = float64 if dtype is None else known_dtype(dtype)
    rows = size_of("eye", "n_rows", n_rows)
    cols = rows if n_cols is None else size_of("eye", "n_cols", n_cols)
    if isinstance(rows, Dim) or isinstance(cols, Dim):
        with explicit(device):
            down, across = (
                catalog.iota(shape=(rows, cols), dtype=int64, axis=axis, place=place_of(device)) for axis in (0, 1)
            )
            return catalog.convert(catalog.eq(catalog.add(down, whole("eye", "k", k)), across), dtype=dtype)
    if min(rows, cols) < 0:
        raise ArgumentError(f"eye makes a matrix with extents of at least 0, got ({rows}, {cols})", shape=(rows, cols))
    if max(rows, cols) > sys.maxsize:
        raise ShapeError(f"eye cannot make a matrix of {rows} by {cols} elements; use smaller extents")
    k = max(-rows, min(whole("eye", "k", k), cols))  # diagonals outside are empty; NumPy requires a small number
    return noted(own(np.eye(rows, cols, k, dtype), place_of(device)))


def _triangle(x: Any, k: int, lower: bool, name: str) -> Any:
    x = value(x)
    if x.spec.ndim < 2:
        raise ShapeError(f"{name} needs at least two axes, got {x.spec!r}; reshape to a matrix", shape=x.spec.shape)
    rows, cols = positions(x, x.spec.ndim - 2), positions(x, x.spec.ndim - 1)
    inside = catalog.ge(catalog.add(rows, k), cols) if lower else catalog.le(catalog.add(rows, k), cols)
    return catalog.select(inside, x, False if x.spec.dtype is bool_ else 0)


@direct(_forms.tril)
def tril(x: Any, /, k: int = 0) -> Array:
    """Lower triangles of matrices: elements on and below diagonal `k`, zeros elsewhere.

    Args:
        x: array with at least two axes.
        k: index of the diagonal; 0 is the main one, positive indices are above it.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ShapeError: `x` has fewer than two axes.

    >>> tr.tril(tr.asarray([[1, 2], [3, 4]]))
    Tensor([[1, 0],
            [3, 4]])
    """
    return _triangle(x, k, True, "tril")


@direct(_forms.triu)
def triu(x: Any, /, k: int = 0) -> Array:
    """Upper triangles of matrices: elements on and above diagonal `k`, zeros elsewhere.

    Args:
        x: array with at least two axes.
        k: index of the diagonal; 0 is the main one, positive indices are above it.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ShapeError: `x` has fewer than two axes.

    >>> tr.triu(tr.asarray([[1, 2], [3, 4]]))
    Tensor([[1, 2],
            [0, 4]])
    """
    return _triangle(x, k, False, "triu")


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of the grid spanned by vectors.

    Args:
        arrays: one vector of coordinates for each axis.
        indexing: ``"ij"`` for matrix order, ``"xy"`` for Cartesian order, which swaps the first two axes.

    Returns:
        A tuple with one array for each vector, all of the shape of the grid.

    Raises:
        ShapeError: an operand is not a vector.
        ArgumentError: `indexing` is unknown.

    See also:
        `ix_` and `indices`, which return index arrays.

    >>> [g.tolist() for g in tr.meshgrid(tr.asarray([1, 2]), tr.asarray([3, 4, 5]), indexing="ij")]
    [[[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid takes indexing='xy' or indexing='ij', got {indexing!r}", indexing=indexing)
    vectors = [value(a) for a in arrays]
    for i, v in enumerate(vectors):
        if v.spec.ndim > 1:
            raise ShapeError(f"meshgrid takes vectors, but operand {i} is {v.spec!r}; ravel it", shape=v.spec.shape)
    vectors = [catalog.reshape(v, shape=(1,)) if not v.spec.ndim else v for v in vectors]
    swap = indexing == "xy" and len(vectors) > 1
    axes = [1, 0, *range(2, len(vectors))] if swap else list(range(len(vectors)))
    shape: list[Any] = [0] * len(vectors)
    for v, axis in zip(vectors, axes, strict=True):
        shape[axis] = v.spec.shape[0]
    goal = tuple(shape)
    return tuple([catalog.broadcast_in_dim(v, shape=goal, dims=(a,)) for v, a in zip(vectors, axes, strict=True)])
