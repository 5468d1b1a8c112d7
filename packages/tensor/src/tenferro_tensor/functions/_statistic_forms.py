"""Direct forms of statistics and counts: the same functions on NumPy arrays; see `tenferro_tensor.direct`.

Each takes the arguments of its function. If it returns ``None`` or NumPy raises, the function itself handles the call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Raw = Any
_LARGEST: Final[Any] = np.fmax.reduce
_SMALLEST: Final[Any] = np.fmin.reduce

LENT_MIN_ELEMENTS: Final = 2048
"""Smallest read-only array that is lent as writable: copying a smaller one takes no longer."""


def _is_plain(x: Raw) -> bool:
    """Whether the dtype is integer or double precision, for which NumPy and this library take the same steps."""
    return x.__class__ is np.ndarray and (x.dtype.kind in "iu" or x.dtype == np.float64)


def median(x: Raw, /, axis: Any = None, *, keepdims: bool = False) -> Raw:
    return np.asarray(np.median(x, axis, keepdims=keepdims)) if _is_plain(x) and x.size else None


def nanmedian(x: Raw, /, axis: Any = None, *, keepdims: bool = False) -> Raw:
    if not _is_plain(x) or not x.size or np.isnan(x).any():
        return None
    return np.asarray(np.median(x, axis, keepdims=keepdims))


def quantile(
    x: Raw, q: Any, /, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Raw:
    if q.__class__ is not float or weights is not None or not _is_plain(x) or not x.size or not np.isfinite(x).all():
        return None
    return np.asarray(np.quantile(x, q, axis, method=method, keepdims=keepdims))  # type: ignore[call-overload]


def nanmax(x: Raw, /, axis: Any = None, *, keepdims: bool = False) -> Raw:
    return np.asarray(_LARGEST(x, axis, keepdims=keepdims)) if x.dtype.char in "fd" else None


def nanmin(x: Raw, /, axis: Any = None, *, keepdims: bool = False) -> Raw:
    return np.asarray(_SMALLEST(x, axis, keepdims=keepdims)) if x.dtype.char in "fd" else None


class _Lent:
    """Memory of a read-only array as if it were writable, for a NumPy function that only reads it."""

    def __init__(self, x: np.ndarray[Any, Any]) -> None:
        self.owner = x
        shown = x.__array_interface__
        self.__array_interface__ = {**shown, "data": (shown["data"][0], False)}


def _uncopied(x: Raw) -> Raw:
    """An array of the same elements that `numpy.bincount`, which requests writable memory, does not copy."""
    return x if x.flags.writeable or x.size < LENT_MIN_ELEMENTS else np.asarray(_Lent(x))


def bincount(x: Raw, /, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Raw:
    if x.dtype.kind not in "iu" or not x.size:
        return None
    if length is not None:
        # Larger integers are not counted; NumPy would extend the result to them.
        if length.__class__ is not int or x.max() >= length:
            return None
        minlength = length
    if weights is not None:
        if weights.__class__ is not np.ndarray or weights.dtype != np.float64:
            return None
        weights = _uncopied(weights)
    return np.bincount(_uncopied(x), weights, minlength)


def digitize(x: Raw, /, bins: Any, right: bool = False) -> Raw:
    return np.digitize(x, bins, right) if x.ndim else None


def histogram(x: Raw, /, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    return np.histogram(x, bins, range) if weights is None and not density and _is_plain(x) else None
