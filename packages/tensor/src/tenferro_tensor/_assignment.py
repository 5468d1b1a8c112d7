"""Assignment by index: after ``x[key] = values`` the object `x` represents the updated value.

It means the same for every kind of value, and is an ordinary operation of derivatives and programs: the object becomes
``x.at[key].set(values)``, of whatever kind that is. Only the memory of a concrete tensor that nothing else refers to is
written to; views and other tensors never change.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any, Final
from warnings import warn_explicit

import numpy as np

from tenferro_tensor.calls import SCALARS, key_parts, state
from tenferro_tensor.functions.creation import asarray
from tenferro_tensor.operands import converted
from tenferro_tensor.origins import noted, user_frame
from tenferro_tensor.tables import Table
from tenferro_tensor_core import UnsupportedError, can_convert, weak


def assign(x: Any, key: Any, values: Any, lost: bool = False) -> None:
    """``x[key] = values``; `lost` if the object is discarded afterwards.

    Raises:
        UnsupportedError: `x` is an argument of a function that is compiled, differentiated or mapped, which cannot
            change the caller's array.
    """
    if x.lent:
        raise UnsupportedError(
            f"{x.spec!r} is an argument of a function that is compiled, differentiated or mapped, and its elements "
            "were assigned to, which cannot change the caller's array; write x = x.copy() first, or "
            "x = x.at[...].set(...), and return the result if the caller needs it"
        )
    if lost:
        _warn(
            f"assignment to elements of a temporary {x.spec!r} has no effect: a view is a separate value, and does not "
            "change the tensor that it was taken from; index once, as in x[1, mask] = v, or give the view a name"
        )
    elif _is_part(x):
        _warn(
            f"assignment to elements of a view {x.spec!r} does not change the array that it was taken from: a view is "
            "a separate value; assign to that array, or to view.copy() if a separate value is intended"
        )
    if x.__class__ is not state.tensor or not _write(x, key, values):
        x._go_over(x.at[key].set(_narrowed(x, values)))
        noted(x)


def _is_part(x: Any) -> bool:
    """Whether a tensor is a view of a part of an array that something else refers to.

    A view of all elements does not count: results may be views.
    """
    raw = x._inside
    whole = raw.base if raw.__class__ is np.ndarray and raw.ndim else None
    if whole.__class__ is not np.ndarray or not whole.flags.owndata or raw.size >= whole.size:
        return False
    return getrefcount(whole) > _HELD_ONCE


def _warn(text: str) -> None:
    """Warn at the user's line."""
    frame = user_frame()
    if frame is not None:
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        warn_explicit(text, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry=registry)


def _narrowed(x: Any, values: Any) -> Any:
    """Convert values to the precision of `x`, as NumPy's in-place operators do."""
    if values.__class__ in SCALARS:
        return values
    values = asarray(values)
    have, goal = values.spec.dtype, x.spec.dtype
    known = x.spec.inexact and values.spec.inexact and (x.spec.cplx or not values.spec.cplx)
    return converted(values, goal) if known or have.kind + goal.kind in _INTEGERS else values


def _write(x: Any, key: Any, values: Any) -> bool:
    """Assign to a concrete tensor by NumPy; false if that is not possible, with nothing changed.

    NumPy validates its arguments before it writes. The generic path raises the typed errors.
    """
    raw = x._data
    if raw.__class__ is not np.ndarray or state.open_scopes or not x.spec.place.on_host:
        return False
    values = _admitted(raw.dtype, values)
    key = _host_key(key)
    if values is None or key is NotImplemented:
        return False
    if getrefcount(raw) == _HELD_ONCE and raw.flags.owndata:
        raw.flags.writeable = True  # no read-only view is left
    else:
        raw = raw.copy(order="K")
    try:
        raw[key] = values
    except (IndexError, ValueError, TypeError):
        return False
    x._data = raw
    return True


def _count() -> int:
    raw = np.zeros(1)
    return getrefcount(raw)


_INTEGERS: Final = ("ii", "uu", "ui")
"""Pairs of integer kinds (values, array) that may be assigned: values wrap around, as in NumPy."""

_HELD_ONCE: Final = _count() + 1
"""`getrefcount` of an array that one local variable and one tensor refer to."""

_fits: Final = Table("dtypes that assignment accepts")


def _admitted(dtype: np.dtype[Any], values: Any) -> Any:
    """Values that NumPy may write without loss; ``None`` for the generic path."""
    kind = values.__class__
    if kind in SCALARS:
        fits = _fits.get((dtype, kind))
        if fits is None:
            fits = _fits.remember((dtype, kind), weak(kind, dtype) == dtype)
        return values if fits else None
    if kind is state.tensor:
        values = values._data if values.spec.place.on_host else None
    if not isinstance(values, (np.ndarray, np.generic)):
        return None
    fits = _fits.get((dtype, values.dtype))
    if fits is None:
        kinds = values.dtype.kind + dtype.kind
        known = can_convert(values.dtype, dtype) or kinds in ("ff", "cc", *_INTEGERS)
        fits = _fits.remember((dtype, values.dtype), known)
    return values if fits else None


def _host_key(key: Any) -> Any:
    """A key with the same meaning for NumPy; `NotImplemented` for the generic path."""
    if key_parts(key) is not None:
        return key
    if key.__class__ is not tuple:
        return _host_indices(key)
    parts = tuple([part if key_parts(part) is not None else _host_indices(part) for part in key])
    return NotImplemented if any(part is NotImplemented for part in parts) else parts


def _host_indices(part: Any) -> Any:
    if part.__class__ is state.tensor and part.spec.place.on_host:
        part = part._data
    elif part.__class__ is list and {*map(type, part)} in ({int}, {bool}):
        part = np.asarray(part)
    return part if isinstance(part, np.ndarray) and part.dtype.kind in "iub" else NotImplemented
