"""Ownership of memory: tensors are read-only from outside, and their memory is not shared once something depends on it.

The library *owns* the memory of an array whose chain of bases ends in an array that owns its data: kernels create such
arrays, and nobody else holds a writable one. Memory from outside is *borrowed*: the chain of bases ends in a read-only
`memoryview`. This distinguishes views as well as whole arrays, so neither a flag nor a table is needed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import numpy as np

from tenferro_tensor.backends import get_backend
from tenferro_tensor_core import BackendUnavailableError

__all__ = ["borrowed", "copied", "is_owned", "owned", "read_only"]

PASSING_MAX_BYTES: Final = 4096
"""Largest array, in bytes, that an operation copies instead of sharing it: sharing would take longer."""

POOLED_MIN_BYTES: Final = 1 << 17
"""Smallest copy, in bytes, that uses the backend's memory pool: new memory would take longer than the copy itself."""


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view that NumPy refuses to make writable; the array and its bases become read-only.

    Args:
        array: host array.

    Returns:
        The view.
    """
    if array.flags.writeable or array.base is not None:
        owner: Any = array
        while owner.__class__ is np.ndarray:
            owner.setflags(write=False)
            owner = owner.base
    return array.view()


def borrowed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view of memory that others may write to; attributes set on `array` do not affect it.

    Args:
        array: host array.

    Returns:
        The view.
    """
    if array.dtype.kind == "V":  # bfloat16, which the buffer protocol has no format for
        return borrowed(array.view(np.uint16)).view(array.dtype)
    return np.asarray(memoryview(array).toreadonly())  # type: ignore[arg-type]


def is_owned(raw: Any) -> bool:
    """Whether nobody else can write to a raw array.

    True for NumPy scalars and for arrays of accelerators, which share memory only through DLPack.

    Args:
        raw: raw array.

    Returns:
        True if the library owns the memory.
    """
    if raw.__class__ is not np.ndarray:
        return True
    while raw.__class__ is np.ndarray:
        raw = raw.base
    return raw is None


def copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same layout.

    Args:
        array: host array.

    Returns:
        The copy.
    """
    if array.nbytes >= POOLED_MIN_BYTES:
        with suppress(BackendUnavailableError):
            return get_backend("cpu").copied(array)
    return array.copy(order="K")


def owned(x: Any) -> Any:
    """Copy borrowed memory of a tensor that a derivative or a program is about to keep.

    The tensor itself keeps the copy, so that it is made once.

    Args:
        x: value.

    Returns:
        `x`.
    """
    raw: Any = getattr(x, "_data", None)
    if raw.__class__ is np.ndarray and raw.base is not None and not is_owned(raw):
        x._data = _copy(raw)
    return x


def _copy(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same layout; repeated axes stay repeated."""
    narrow = raw[tuple([slice(1) if step == 0 else slice(None) for step in raw.strides])]
    copy = copied(narrow)
    return copy if narrow.shape == raw.shape else np.broadcast_to(copy, raw.shape)
