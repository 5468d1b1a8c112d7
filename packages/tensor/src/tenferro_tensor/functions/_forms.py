"""Direct forms of functions that move elements: the same functions on NumPy arrays; see `tenferro_tensor.direct`.

Each takes the arguments of its function. If it returns ``None`` or NumPy raises, the function itself handles the call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_tensor.calls import DIRECT_MAX_BYTES, broadcasted, counted, joined
from tenferro_tensor.tables import Table

Raw = Any
_ALL: Final = slice(None)
_REVERSED: Final = slice(None, None, -1)


def _are_indices(given: Any) -> bool:
    """Whether these are integer indices; NumPy would also accept booleans as numbers."""
    if given.__class__ is np.ndarray or isinstance(given, np.generic):
        return given.dtype.kind in "iu"
    return given.__class__ is int or (given.__class__ is list and set(map(type, given)) == {int})


def take(x: Raw, /, indices: Any, axis: int | None = None) -> Raw:
    if (axis is None and x.ndim != 1) or not _are_indices(indices):
        return None
    return x.take(indices, axis)


def take_along_axis(x: Raw, /, indices: Raw, axis: int = -1) -> Raw:
    return np.take_along_axis(x, indices, axis) if indices.dtype.kind in "iu" else None


def _new_axis(ndim: int, axis: int) -> tuple[Any, ...]:
    """The key that inserts a new axis into an array with `ndim` axes."""
    if not -ndim - 1 <= axis <= ndim:
        raise IndexError
    return (_ALL,) * (axis % (ndim + 1)) + (None,)


def stack(arrays: Any, /, axis: int = 0) -> Raw:
    shape = arrays[0].shape
    for a in arrays:
        if a.shape != shape:
            return None
    key = _new_axis(len(shape), axis)
    return joined([a[key] for a in arrays], axis)


def unstack(x: Raw, /, axis: int = 0) -> Any:
    if axis.__class__ is not int or not -x.ndim <= axis < x.ndim:
        return None
    before = (_ALL,) * (axis % x.ndim)
    return tuple([x[*before, i] for i in range(x.shape[axis])])


def repeat(x: Raw, /, repeats: Any, axis: int | None = None) -> Raw:
    if axis is not None and not x.ndim:
        return None  # NumPy treats a number as a vector
    if repeats.__class__ is int:
        return x.repeat(repeats, axis) if 0 < x.nbytes <= DIRECT_MAX_BYTES else None
    counts = hasattr(repeats, "dtype") and repeats.dtype.kind in "iu" and repeats.ndim < 2
    return x.repeat(repeats, axis) if counts and x.size else None  # NumPy does not check the counts of an empty array


def split(x: Raw, /, indices_or_sections: Any, axis: int = 0) -> Any:
    parts = indices_or_sections
    if parts.__class__ is not int or parts < 1 or axis.__class__ is not int or not -x.ndim <= axis < x.ndim:
        return None
    each, rest = divmod(x.shape[axis], parts)
    if rest:
        return None
    before = (_ALL,) * (axis % x.ndim)
    return [x[*before, i * each : (i + 1) * each] for i in range(parts)]


def tile(x: Raw, /, reps: Any) -> Raw:
    reps = reps if reps.__class__ is tuple else (reps,)
    n = max(len(reps), x.ndim)
    reps = (1,) * (n - len(reps)) + reps
    shape = (1,) * (n - x.ndim) + x.shape
    out = np.empty([r * s for r, s in zip(reps, shape, strict=True)], x.dtype)
    blocks: list[int] = []
    narrow: list[int] = []
    for r, s in zip(reps, shape, strict=True):
        if r < 0:
            return None
        blocks += (r, s)
        narrow += (1, s)
    out.reshape(blocks)[...] = x.reshape(narrow)
    return out


def flip(x: Raw, /, axis: Any = None) -> Raw:
    if not x.ndim:
        return None
    # Axes of one element stay: NumPy rounds single numbers with a negative stride differently.
    if axis is None:
        return x[tuple([_ALL if n == 1 else _REVERSED for n in x.shape])]
    if axis.__class__ is not int or not -x.ndim <= axis < x.ndim:
        return None
    return x[(*(_ALL,) * (axis % x.ndim), _ALL if x.shape[axis] == 1 else _REVERSED)]


def roll(x: Raw, shift: Any, axis: Any = None) -> Raw:
    if axis is None:
        return None if shift.__class__ is not int else _rolled(x.reshape(-1), shift, 0).reshape(x.shape)
    if axis.__class__ is int and shift.__class__ is int:
        return _rolled(x, shift, axis) if -x.ndim <= axis < x.ndim else None
    if axis.__class__ is not tuple or shift.__class__ not in (tuple, int):
        return None
    for a in axis:
        if a.__class__ is not int or not -x.ndim <= a < x.ndim:
            return None
    return np.roll(x, shift, axis) if x.ndim > 1 else None


def _rolled(x: Raw, shift: int, axis: int) -> Raw:
    n = x.shape[axis]
    by = shift % n if n else 0
    if not by:
        return x.view()
    before = (_ALL,) * (axis % x.ndim)
    return joined((x[*before, n - by :], x[*before, : n - by]), axis)


def squeeze(x: Raw, /, axis: Any = None) -> Raw:
    return None if axis is None else x.squeeze(axis)


def expand_dims(x: Raw, /, axis: Any = 0) -> Raw:
    return x[_new_axis(x.ndim, axis)] if axis.__class__ is int else None


def permute_dims(x: Raw, /, axes: Any) -> Raw:
    return x.transpose(axes) if axes.__class__ in (tuple, list) else None


def moveaxis(x: Raw, /, source: Any, destination: Any) -> Raw:
    if source.__class__ is not int or destination.__class__ is not int:
        return None
    n = x.ndim
    if not (-n <= source < n and -n <= destination < n):
        return None
    order = [*range(n)]
    order.insert(destination % n, order.pop(source))
    return x.transpose(order)


def ravel(x: Raw, /) -> Raw:
    return x.ravel() if x.size else None


def broadcast_arrays(*arrays: Raw) -> Any:
    shape = np.broadcast(*arrays).shape
    return tuple([broadcasted(a, shape) for a in arrays])


def pad(x: Raw, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Raw:
    cls, kind = constant_values.__class__, x.dtype.kind
    if mode != "constant" or not (
        (cls is int and (kind in "ifc" or not constant_values)) or (cls is float and kind in "fc")
    ):
        return None
    if pad_width.__class__ is int:
        widths: Any = ((pad_width, pad_width),) * x.ndim
    elif x.ndim and len(pad_width) == x.ndim and set(map(len, pad_width)) == {2}:
        widths = pad_width
    else:
        return None
    shape, inner = [], []
    for (before, after), extent in zip(widths, x.shape, strict=True):
        if before < 0 or after < 0 or before.__class__ is not int or after.__class__ is not int:
            return None
        shape.append(before + extent + after)
        inner.append(slice(before, before + extent))
    out = np.empty(shape, x.dtype)
    part = out
    for axis, within in enumerate(inner):
        ahead = (_ALL,) * axis
        if within.start:
            part[*ahead, : within.start] = constant_values
        if within.stop < shape[axis]:
            part[*ahead, within.stop :] = constant_values
        part = part[*ahead, within]
    part[...] = x
    return out


_TRIANGLE_MAX_SIZE: Final = 4096
_triangles: Final = Table("masks of small triangles", bound=64)


def _triangle(x: Raw, k: int) -> Raw:
    """A mask of the elements on and below a diagonal."""
    key = (*x.shape[-2:], k)
    mask = _triangles.get(key)
    if mask is None:
        mask = np.tri(key[0], key[1], k, np.bool_)
        if mask.size <= _TRIANGLE_MAX_SIZE:
            _triangles.remember(key, mask)
    return mask


def tril(x: Raw, /, k: int = 0) -> Raw:
    return np.where(_triangle(x, k), x, x.dtype.type(0)) if k.__class__ is int and x.ndim > 1 else None


def triu(x: Raw, /, k: int = 0) -> Raw:
    return np.where(_triangle(x, k - 1), x.dtype.type(0), x) if k.__class__ is int and x.ndim > 1 else None


def count_nonzero(x: Raw, /, axis: Any = None, *, keepdims: bool = False) -> Raw:
    return counted(x) if axis is None and not keepdims else None
