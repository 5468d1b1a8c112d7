"""Ownership of memory: who may write to it, and when it must be copied first.

The library *owns* the memory of an array whose chain of bases ends in an array that owns its data: kernels create such
arrays, and nobody else holds a writable one. Memory that others hold is *borrowed*: the chain of bases ends in a
`memoryview`, which is read-only for memory from outside, and writable for memory that was handed out. This
distinguishes views as well as whole arrays, so neither a flag nor a table is needed. What depends on borrowed memory
copies it.
"""

from __future__ import annotations

from contextlib import suppress
from sys import getrefcount
from typing import Any, Final, TypeVar

import numpy as np

from tenferro_tensor.backends import get_backend
from tenferro_tensor.calls import kin, placed, separate, sole, spec_of_raw
from tenferro_tensor_core import BackendUnavailableError

T = TypeVar("T", bound=Any)

__all__ = ["borrowed", "copied", "handed_out", "is_owned", "is_plain", "owned", "read_only", "received", "taken_back"]


def __dir__() -> list[str]:
    return __all__.copy()


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


def is_plain(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array from outside can be a raw array without a conversion.

    Args:
        array: host array.

    Returns:
        False for foreign byte order and other dtypes that must be converted, and where that takes a closer look.
    """
    flags, dtype = array.flags, array.dtype
    return flags.forc and flags.aligned and dtype.isnative and spec_of_raw(array).dtype is dtype


def received(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The raw array for a plain array that an operation gets from outside: a copy if it is small, else borrowed.

    Args:
        array: host array for which `is_plain` is true.

    Returns:
        The raw array.
    """
    return array.copy("K") if array.nbytes <= PASSING_MAX_BYTES else borrowed(array)


def handed_out(x: Any) -> np.ndarray[Any, Any] | None:
    """A writable array that shares the memory of a tensor, which is borrowed from now on.

    Args:
        x: tensor in main memory.

    Returns:
        The array; ``None`` if anything but the tensor and its views holds the memory, which must not change. Memory
        that a NumPy array lent is as writable as that array.
    """
    lender = _lender(x._data)
    if lender is not None:  # memory from outside: as if it had been passed on
        given: np.ndarray[Any, Any] = placed(x._data, lender)
        given.flags.writeable = lender.flags.writeable
        return given
    if x._data.dtype.kind == "V" or not sole(x):  # bfloat16, which the buffer protocol has no format for
        return None
    raw = x._data
    owner = raw.base if raw.base.__class__ is np.ndarray else raw
    if owner.base.__class__ is memoryview:
        return _placed(raw, owner.base.obj)  # type: ignore[arg-type]  # the array that the view was made of
    owner.flags.writeable = True
    own = np.asarray(memoryview(owner))  # type: ignore[arg-type]
    for v in kin(x):
        v._data = own if v._data is owner else placed(v._data, own)
    return _placed(raw, owner)


def _lender(raw: Any) -> np.ndarray[Any, Any] | None:
    """The array outside whose memory a raw array borrows."""
    while raw.__class__ is np.ndarray:
        raw = raw.base
    source = raw.obj if raw.__class__ is memoryview and raw.readonly else None
    return source if isinstance(source, np.ndarray) else None


def _placed(raw: Any, owner: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = owner if raw is owner else placed(raw, owner)
    return found


def taken_back(x: Any) -> bool:
    """Own memory again that was handed out, if nobody outside holds it any more.

    Args:
        x: tensor with a NumPy array.

    Returns:
        Whether it is owned again.
    """
    raw = x._data
    owner = raw.base if raw.base.__class__ is np.ndarray else raw
    if owner.base.__class__ is not memoryview or owner.base.readonly or not isinstance(owner.base.obj, np.ndarray):
        return False
    if getrefcount(owner.base.obj) != _VIEWED_ONLY:
        return False
    before = owner.base.obj
    for v in kin(x):
        v._data = before if v._data is owner else placed(v._data, before)
    return True


def _count() -> int:
    view = memoryview(np.zeros(1))  # type: ignore[arg-type]
    return getrefcount(view.obj)


_VIEWED_ONLY: Final = _count()
"""`getrefcount` of an array that only a `memoryview` holds."""


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


def owned(x: T) -> T:
    """Copy borrowed memory of a tensor that a derivative or a program is about to keep.

    The tensor itself keeps the copy, so that it is made once.

    Args:
        x: value.

    Returns:
        `x`.
    """
    raw: Any = getattr(x, "_data", None)
    if raw.__class__ is np.ndarray and raw.base is not None and not is_owned(raw):
        if not taken_back(x):
            if len(kin(x)) == 1:
                x._data = _copy(raw)
            else:
                separate(x)
    return x


def _copy(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same layout; repeated axes stay repeated."""
    narrow = raw[tuple([slice(1) if step == 0 else slice(None) for step in raw.strides])]
    copy = copied(narrow)
    return copy if narrow.shape == raw.shape else np.broadcast_to(copy, raw.shape)
