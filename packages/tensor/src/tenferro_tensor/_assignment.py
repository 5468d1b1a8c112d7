"""Assignment by index: after ``x[key] = values`` the object `x` stands for the updated value.

It means the same for every kind of value, and is an ordinary step of derivatives and programs: the object goes over to
what ``x.at[key].set(values)`` is, of whatever kind that may be. A concrete tensor whose memory nobody else holds is
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
    """``x[key] = values``; `lost` where the object is gone afterwards.

    Raises:
        UnsupportedError: `x` is an argument of a function that is compiled, differentiated or mapped, whose caller
            would have to see the change.
    """
    if x.lent:
        raise UnsupportedError(
            f"{x.spec!r} is an argument of a function that is compiled, differentiated or mapped, and its elements "
            "were assigned to: the caller's array cannot change by that; write x = x.copy() first, or "
            "x = x.at[...].set(...), and return the result if the caller needs it"
        )
    if lost:
        _warn(
            f"elements of a temporary {x.spec!r} are assigned to, and lost: a view is a value of its own, and does not "
            "change the tensor that it is made of; index once, as in x[1, mask] = v, or give the view a name"
        )
    elif _is_part(x):
        _warn(
            f"elements of a view {x.spec!r} are assigned to, and the array that it is a part of does not change: a "
            "view is a value of its own; assign to that array, or to view.copy() if a value apart is meant"
        )
    if x.__class__ is not state.tensor or not _write(x, key, values):
        x._go_over(x.at[key].set(_narrowed(x, values)))
        noted(x)


def _is_part(x: Any) -> bool:
    """Whether a tensor is a view of a part of an array that somebody else holds.

    A view of all elements does not tell: results may be laid out as one.
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
    """Values in the precision of `x`: assigning says which one is meant, as NumPy's operators in place do."""
    if values.__class__ in SCALARS:
        return values
    values = asarray(values)
    have, goal = values.spec.dtype, x.spec.dtype
    known = x.spec.inexact and values.spec.inexact and (x.spec.cplx or not values.spec.cplx)
    return converted(values, goal) if known or have.kind + goal.kind in _INTEGERS else values


def _write(x: Any, key: Any, values: Any) -> bool:
    """Assign to a concrete tensor by NumPy; false where that cannot be done, and nothing has been changed.

    NumPy looks for mistakes before it writes. The generic path words them.
    """
    raw = x._data
    if raw.__class__ is not np.ndarray or state.open_scopes or not x.spec.place.on_host:
        return False
    values = _admitted(raw.dtype, values)
    key = _host_key(key)
    if values is None or key is NotImplemented:
        return False
    if getrefcount(raw) == _HELD_ONCE and raw.flags.owndata:
        raw.flags.writeable = True  # views that it was read through are gone
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
"""Kinds of integers, and of those that may be assigned to them: wide ones wrap around, as in NumPy."""

_HELD_ONCE: Final = _count() + 1
"""References that `getrefcount` counts of an array in a local variable that one tensor holds, too."""

_fits: Final = Table("numbers and dtypes that arrays take as they are")


def _admitted(dtype: np.dtype[Any], values: Any) -> Any:
    """Values as NumPy may write them without loss; ``None`` for the generic path to judge."""
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
    """A key that NumPy understands in the same way; `NotImplemented` for the generic path to judge."""
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
