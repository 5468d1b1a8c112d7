"""Who may write to the memory of a tensor: nobody outside, and nobody else once something depends on it.

The memory of an array is *owned* by the library where the chain of its bases ends in an array that owns it: kernels
make such arrays, and nobody else holds a writable one. Memory that comes in is *borrowed*: it is seen through a
read-only `memoryview`, at which the chain of bases ends. Views tell the two apart as well as whole arrays do, so
neither a flag nor a table has to be kept.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import numpy as np

from tenferro_tensor.backends import get_backend
from tenferro_tensor_core import BackendUnavailableError

__all__ = ["borrowed", "copied", "is_owned", "owned", "read_only"]

PASSING_MAX_BYTES: Final = 4096
"""Largest array in bytes that an operation copies rather than shares: sharing it would take longer."""

POOLED_MIN_BYTES: Final = 1 << 17
"""Smallest copy in bytes that takes its memory from a backend's pool: fresh memory would take longer than copying."""


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view of an array that NumPy refuses to make writable; the array, and what it is a view of, become read-only."""
    if array.flags.writeable or array.base is not None:
        owner: Any = array
        while owner.__class__ is np.ndarray:
            owner.setflags(write=False)
            owner = owner.base
    return array.view()


def borrowed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view of memory that somebody else may write to; attributes set on `array` do not reach it."""
    if array.dtype.kind == "V":  # bfloat16, which the buffer protocol has no format for
        return borrowed(array.view(np.uint16)).view(array.dtype)
    return np.asarray(memoryview(array).toreadonly())  # type: ignore[arg-type]


def is_owned(raw: Any) -> bool:
    """Whether nobody else can write to a raw array.

    True of NumPy's scalars, and of arrays of accelerators, which share memory only where DLPack brought them in.
    """
    if raw.__class__ is not np.ndarray:
        return True
    while raw.__class__ is np.ndarray:
        raw = raw.base
    return raw is None


def copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of the same layout."""
    if array.nbytes >= POOLED_MIN_BYTES:
        with suppress(BackendUnavailableError):
            return get_backend("cpu").copied(array)
    return array.copy(order="K")


def owned(x: Any) -> Any:
    """`x`, which a derivative or a program is about to keep; if its memory is borrowed, the tensor copies it first.

    The tensor itself keeps the copy, so that it is made once.
    """
    raw: Any = getattr(x, "_data", None)
    if raw.__class__ is np.ndarray and raw.base is not None and not is_owned(raw):
        x._data = _copy(raw)
    return x


def _copy(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of the same layout; axes that repeat one element still do."""
    narrow = raw[tuple([slice(1) if step == 0 else slice(None) for step in raw.strides])]
    copy = copied(narrow)
    return copy if narrow.shape == raw.shape else np.broadcast_to(copy, raw.shape)
