"""Direct forms of functions that exist in NumPy under the same names; see `tenferro_tensor.direct`.

Each takes the arguments of its function. If it returns ``None`` or NumPy raises, the function itself handles the call.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

import numpy as np

Raw = Any
_np: Any = np
"""NumPy as an untyped module: its overloads cannot describe raw arrays."""


_FLOAT64: Final = np.dtype("float64")


def _is_vector(x: Any, kinds: str = "iufc") -> bool:
    return x.__class__ is np.ndarray and x.ndim == 1 and x.dtype.kind in kinds and x.dtype.itemsize > 2


def vstack(arrays: Any, /, *, dtype: Any = None) -> Raw:
    return np.concatenate([_with_axes(a, 2) for a in arrays], 0) if dtype is None else None


def hstack(arrays: Any, /, *, dtype: Any = None) -> Raw:
    if dtype is not None:
        return None
    values = [_with_axes(a, 1) for a in arrays]
    return np.concatenate(values, 0 if values[0].ndim == 1 else 1)


def dstack(arrays: Any, /, *, dtype: Any = None) -> Raw:
    return np.concatenate([_with_axes(a, 3) for a in arrays], 2) if dtype is None else None


def column_stack(arrays: Any, /) -> Raw:
    return np.concatenate([a if a.ndim > 1 else a.reshape(-1, 1) for a in arrays], 1)


def array_split(x: Raw, /, indices_or_sections: Any, axis: int = 0) -> Any:
    if indices_or_sections.__class__ is not int or indices_or_sections < 1 or not -x.ndim <= axis < x.ndim:
        return None
    each, longer = divmod(x.shape[axis], indices_or_sections)
    before, parts, start = (slice(None),) * (axis % x.ndim), [], 0
    for i in range(indices_or_sections):
        stop = start + each + (i < longer)
        parts.append(x[(*before, slice(start, stop))])
        start = stop
    return parts


def _with_axes(x: Raw, least: int) -> Raw:
    shape = x.shape
    if len(shape) < least:
        shape = (1,) * (least > 1 and len(shape) == 1) + shape
        shape += (1,) * (least - len(shape))
    return x.reshape(shape)


def atleast_1d(*arrays: Raw) -> Any:
    return _with_axes(arrays[0], 1) if len(arrays) == 1 else tuple([_with_axes(a, 1) for a in arrays])


def atleast_2d(*arrays: Raw) -> Any:
    return _with_axes(arrays[0], 2) if len(arrays) == 1 else tuple([_with_axes(a, 2) for a in arrays])


def atleast_3d(*arrays: Raw) -> Any:
    return _with_axes(arrays[0], 3) if len(arrays) == 1 else tuple([_with_axes(a, 3) for a in arrays])


def rollaxis(x: Raw, axis: int, start: int = 0) -> Raw:
    return np.rollaxis(x, axis, start)


def diag(x: Raw, /, k: int = 0) -> Raw:
    if x.__class__ is not np.ndarray or k.__class__ is not int:
        return None
    if x.ndim == 2:
        return x.diagonal(k).copy() if -x.shape[0] <= k <= x.shape[1] else None
    return np.diag(x, k) if x.ndim == 1 else None


def diagflat(x: Raw, /, k: int = 0) -> Raw:
    return diag(x.reshape(-1), k)


def unravel_index(indices: Raw, shape: Any, order: str = "C") -> Any:
    return _np.unravel_index(indices, shape, order) if indices.dtype.kind in "iu" else None


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Raw:
    if multi_index.__class__ is not tuple or not all(i.dtype.kind in "iu" for i in multi_index):
        return None
    return _np.ravel_multi_index(multi_index, dims, mode, order)


def convolve(x: Raw, /, v: Raw, mode: str = "full") -> Raw:
    return _np.convolve(x, v, mode) if _is_vector(x) and _is_vector(v) else None


def correlate(x: Raw, /, v: Raw, mode: str = "valid") -> Raw:
    return _np.correlate(x, v, mode) if _is_vector(x) and _is_vector(v) else None


def interp(x: Raw, xp: Raw, fp: Raw, left: Any = None, right: Any = None, period: Any = None) -> Raw:
    if not (x.dtype is xp.dtype is fp.dtype is _FLOAT64 and period is None and _is_end(left) and _is_end(right)):
        return None
    return np.interp(x, xp, fp, left, right) if isfinite(fp.dot(fp)) else None  # NumPy has rules for infinities


def _is_end(value: Any) -> bool:
    return value is None or value.__class__ is float


def gradient(f: Raw, /, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    if (
        edge_order != 1
        or f.dtype.kind not in "fc"
        or f.dtype.itemsize < 4
        or not {type(h) for h in varargs} <= {int, float}
    ):
        return None
    return np.gradient(f, *varargs, axis=axis)


def ediff1d(x: Raw, /, to_end: Any = None, to_begin: Any = None) -> Raw:
    if to_end is not None or to_begin is not None or x.dtype.kind not in "iufc" or not x.size:
        return None
    flat = x.reshape(-1)
    return flat[1:] - flat[:-1]


def extract(condition: Raw, x: Raw, /, *, size: Any = None, fill_value: Any = 0) -> Raw:
    mask, flat = condition.reshape(-1), x.reshape(-1)
    if size is not None or mask.shape != flat.shape:
        return None
    return flat[mask if mask.dtype.kind == "b" else mask != 0]


def choose(x: Raw, /, choices: Any, mode: str = "raise") -> Raw:
    if x.dtype.kind not in "iu" or len({c.dtype for c in choices}) != 1:
        return None
    return _np.choose(x, choices, mode=mode)


def lexsort(keys: Any, /, axis: int = -1) -> Raw:
    return np.lexsort(keys, axis)


def resize(x: Raw, /, new_shape: Any) -> Raw:
    return np.resize(x, new_shape) if x.size and new_shape.__class__ in (int, tuple) else None


def delete(x: Raw, /, obj: Any, axis: int | None = None) -> Raw:
    known = obj.__class__ is int or (obj.__class__ is list and {type(i) for i in obj} == {int})
    return np.delete(x, obj, axis) if known and x.ndim else None


def unique(
    x: Raw,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: Any = None,
    fill_value: Any = None,
) -> Any:
    if size is not None or x.dtype.kind not in "iu":  # NumPy may keep either of 0.0 and -0.0
        return None
    return _np.unique(x, return_index, return_inverse, return_counts, axis)


def union1d(x: Raw, y: Raw, /, *, size: Any = None, fill_value: Any = None) -> Raw:
    if size is not None or x.dtype.kind not in "iu" or y.dtype.kind not in "iu" or x.dtype != y.dtype:
        return None
    return np.union1d(x, y)


def intersect1d(x: Raw, y: Raw, /, assume_unique: bool = False, return_indices: bool = False) -> Any:
    if x.dtype.kind not in "iu" or x.dtype != y.dtype:
        return None
    return _np.intersect1d(x, y, assume_unique, return_indices)


def setdiff1d(x: Raw, y: Raw, /, assume_unique: bool = False) -> Raw:
    return np.setdiff1d(x, y, assume_unique) if x.dtype.kind in "iu" and x.dtype == y.dtype else None


def setxor1d(x: Raw, y: Raw, /, assume_unique: bool = False) -> Raw:
    return np.setxor1d(x, y, assume_unique) if x.dtype.kind in "iu" and x.dtype == y.dtype else None


def polyadd(p: Raw, q: Raw, /) -> Raw:
    return np.polyadd(p, q) if _is_vector(p) and _is_vector(q) else None


def polysub(p: Raw, q: Raw, /) -> Raw:
    return np.polysub(p, q) if _is_vector(p) and _is_vector(q) else None


def polyval(p: Raw, /, x: Raw) -> Raw:
    if not _is_vector(p, "if") or x.__class__ is not np.ndarray or x.dtype != p.dtype:
        return None
    out = np.zeros_like(x)
    for c in p:
        out = out * x + c
    return out


def vander(x: Raw, /, n: Any = None, increasing: bool = False) -> Raw:
    if not _is_vector(x) or x.dtype.name not in ("int64", "float64", "complex128"):
        return None
    return np.vander(x, n, increasing)
