"""The objects that show one memory: a concrete tensor and the views made from it.

They form a ring, so that a write knows whether anybody else holds the memory, and a copy takes all of them along. For
values of other kinds, the ring holds a base and the views that are derived from it: see `_views`. `_c/sharing.c` is the
same in C.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from tenferro_tensor._interpreted import ValueBase
from tenferro_tensor_core.forks import new_lock

_lock: Final = new_lock()
"""While a view joins a ring nobody moves the ring to other memory."""


def link(z: Any, x: Any, /) -> None:
    """Put `z` among the objects that show the memory or the base of `x`.

    If another thread has moved `x` to other memory since its view `z` was made, `z` keeps the old memory for itself.

    Args:
        z: value.
        x: value.
    """
    if z is x:
        return
    with _lock:
        _leave(z)
        both = z._inside.__class__ is x._inside.__class__ is np.ndarray
        if both and not np.may_share_memory(z._inside, _owner(x._inside)):
            return
        ring = getattr(x, "_ring", None)
        if ring is None:
            ring = x._ring = WeakValueDictionary({id(x): x})
        ring[id(z)] = z
        z._ring = ring


def unlink(x: Any, /) -> None:
    """Make `x` a value of its own.

    Args:
        x: value.
    """
    if isinstance(x, ValueBase):
        _leave(x)
        x._view = None


def _leave(x: Any) -> None:
    ring = getattr(x, "_ring", None)
    if ring is not None:
        ring.pop(id(x), None)
        x._ring = None


def kin(x: Any, /) -> list[Any]:
    """The objects that show the memory or the base of `x`, which comes first.

    Args:
        x: value.

    Returns:
        The objects.
    """
    found, ring = [x], getattr(x, "_ring", None)
    # Other threads may link views: `valuerefs` copies atomically, iteration over values does not.
    for r in () if ring is None else ring.valuerefs():
        v = r()
        if v is not None and v is not x:
            found.append(v)
    return found


def _owner(raw: Any) -> Any:
    return raw.base if raw.base.__class__ is np.ndarray else raw


def in_one(z: Any, x: Any, /) -> bool:
    """Whether two raw arrays lie in the memory of one array.

    Args:
        z: raw array.
        x: raw array.

    Returns:
        True if they do.
    """
    return z.__class__ is x.__class__ is np.ndarray and _owner(z) is _owner(x)


def sole(x: Any, /) -> bool:
    """Whether a tensor and its views are the only holders of their memory.

    Args:
        x: tensor.

    Returns:
        True if they are.
    """
    owner = _owner(x._data)
    token = owner.base
    if not owner.flags.owndata and (
        token.__class__ is not memoryview or token.readonly or not isinstance(token.obj, np.ndarray)
    ):
        return False
    return _references(owner) == _held(kin(x), owner)


def _references(owner: Any) -> int:
    return getrefcount(owner)


def _held(members: list[Any], owner: Any) -> int | None:
    """The references to `owner` if only the members hold it; ``None`` if their raw arrays are held as well."""
    due = _UNHELD
    for v in members:
        if v._inside.__class__ is not np.ndarray or _owner(v._inside) is not owner:
            return None
        if v._inside is not owner and getrefcount(v._inside) != _HELD:
            return None
        due += 1
    return due


def placed(raw: Any, owner: Any, /) -> Any:
    """An array like `raw`, at its address; `owner` keeps the memory.

    Args:
        raw: raw array.
        owner: array with that memory.

    Returns:
        The array.
    """
    if not raw.size:
        return np.empty(raw.shape, raw.dtype)
    if (raw.shape, raw.strides, raw.dtype, _address(raw)) == (owner.shape, owner.strides, owner.dtype, _address(owner)):
        return owner[...]
    up = owner[(*[slice(None, None, -1 if step < 0 else 1) for step in owner.strides], ...)]
    order = sorted(range(up.ndim), key=lambda axis: -up.strides[axis])
    flat = up.transpose(order).reshape(-1).view(np.uint8)
    return _at(flat, _address(raw) - _address(flat), raw)


def _address(raw: Any) -> int:
    return int(raw.__array_interface__["data"][0])


def _at(flat: Any, start: int, like: Any) -> Any:
    if not like.size:
        return np.ndarray(like.shape, like.dtype, flat)
    strides = [step if n > 1 else like.itemsize for n, step in zip(like.shape, like.strides, strict=True)]
    return np.ndarray(like.shape, like.dtype, flat, start, strides)


def separate(x: Any, /) -> None:
    """Give a tensor and its views memory of their own: a copy.

    Args:
        x: tensor.
    """
    from ctypes import string_at  # deferred: rarely needed

    with _lock:
        members = kin(x)
        owner = _owner(x._data)
        if len(members) == 1 or not owner.size:
            x._data = x._data.copy(order="K")
            return
        low, high = np.lib.array_utils.byte_bounds(owner)
        block = np.frombuffer(bytearray(string_at(low, high - low)), np.uint8).copy()
        for v in members:
            if in_one(v._inside, owner):
                v._data = _at(block, _address(v._data) - low, v._data)


def updated(x: Any, key: Any, values: Any, /) -> None:
    """In C a fast path of ``x.at[key].set(values)``; here it leaves the call to the function.

    Args:
        x: value.
        key: key.
        values: values.
    """


def _unheld() -> int:
    def count() -> int:
        owner = np.zeros(1)
        return _references(owner)

    return count()


_UNHELD: Final = _unheld()


class _RawHolder:
    def __init__(self) -> None:
        self._inside = np.zeros(1)


def _count() -> int:
    v = _RawHolder()
    return getrefcount(v._inside)


_HELD: Final = _count()
