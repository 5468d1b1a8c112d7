"""Assignment: after ``x[key] = values`` or ``x += y``, the object `x` and every view of its base show the new elements.

It means the same for every kind of value, and is an ordinary operation of derivatives and programs: the object becomes
``x.at[key].set(values)``, of whatever kind that is, and with it its base and the base's other views (`views.replace`).
Memory is written to where only a base and its views hold it; it is copied first where something else does, so that
other values never change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_tensor.calls import SCALARS, in_one, key_parts, kin, placed, separate, sole, state
from tenferro_tensor.functions._composed_keys import composed
from tenferro_tensor.functions.creation import asarray
from tenferro_tensor.operands import converted
from tenferro_tensor.origins import noted
from tenferro_tensor.tables import Table
from tenferro_tensor.views import replace, replace_base
from tenferro_tensor_core import DTypeError, ShapeError, can_convert, weak


def assign(x: Any, key: Any, values: Any) -> None:
    """``x[key] = values``."""
    if _is_shown(x, key, values):
        return
    if x.__class__ is state.tensor and _write(x, key, values):
        return
    values = _narrowed(x, values)
    _renew(x, key, values, lambda: x.at[key].set(values))


def augment(x: Any, op: Any, other: Any) -> Any:
    """``x op= other``: the elements become those of ``op(x, other)``, in the dtype of `x`.

    Args:
        x: value.
        op: the op of the operator.
        other: the operand.

    Returns:
        `x`; `NotImplemented` if the operand is unsupported.

    Raises:
        ShapeError: the result has another shape.
        DTypeError: the result has a dtype of another kind.
    """
    z = x._operate(op, x, other)
    if z is NotImplemented:
        return z
    before, after = x.spec, z.spec
    if after.shape != before.shape:
        raise ShapeError(
            f"an in-place operator cannot make {before!r} an array of shape {after.shape}; write x = x + y",
            shape=before.shape,
            wanted=after.shape,
        )
    if after.dtype != before.dtype:
        if not np.can_cast(after.dtype, before.dtype, "same_kind"):
            raise DTypeError(
                f"an in-place operator cannot store {after.dtype.name} in {before!r}; write x = x + y, or convert x "
                "first"
            )
        z = converted(z, before.dtype)
    if x.__class__ is state.tensor is z.__class__ and (len(kin(x)) > 1 or _is_borrowed(x)) and _write(x, ..., z):
        return x
    _renew(x, ..., z, lambda: z)
    return x


def _renew(x: Any, key: Any, values: Any, updated: Callable[[], Any]) -> None:
    """Write to the base where the elements have a key there; else `x` becomes `updated`, and its base with it."""
    inner = _inner_key(x, key)
    if inner is None:
        replace(x, updated())
    else:
        replace_base(x, lambda base: base.at[inner].set(values))
    noted(x)


def _is_shown(x: Any, key: Any, values: Any) -> bool:
    """Whether `values` is the view ``x[key]`` itself, as after ``x[key] += v``."""
    given = getattr(values, "_view", None)
    if given is None or given[1][-1].asked is not key or key is None:
        return False
    base, steps = x._view or (x, ())
    return given[0] is base and given[1][-1].above == steps


def _inner_key(x: Any, key: Any) -> Any:
    """The key of the base for the elements `key` of a view; ``None`` if it is not one of integers and slices.

    Starts that are known only at run time are moved inside, so that they count only if they are known to lie there.
    """
    steps = () if x._view is None else x._view[1]
    if not steps or any(step.asked is None for step in steps):
        return None
    return composed(x._view[0].spec.shape, [*[step.args[0] for step in steps], key])


def _is_borrowed(x: Any) -> bool:
    """Whether the memory of a tensor was handed out."""
    base: Any = x._data
    while base.__class__ is np.ndarray:
        base = base.base
    return isinstance(base, memoryview)


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
    if x._data.__class__ is not np.ndarray or state.open_scopes or not x.spec.place.on_host:
        return False
    alone = sole(x) and _is_apart(x._data)  # before the values, perhaps a view of `x`, are referred to again
    values = _admitted(x._data.dtype, values)
    key = _host_key(key)
    if values is None or key is NotImplemented:
        return False
    if not alone:
        if not all(in_one(v._inside, x._data) for v in kin(x)):
            return False
        separate(x)
    raw = x._data
    if not raw.flags.writeable:
        owner = raw.base if raw.base.__class__ is np.ndarray else raw
        if not owner.flags.writeable:
            owner.flags.writeable = True
        if raw is not owner:  # NumPy sets no flag of a view whose base asks a column-major buffer
            raw = x._data = placed(raw, owner)
    try:
        raw[key] = values
    except (IndexError, ValueError, TypeError):
        return False
    return True


def _is_apart(raw: np.ndarray[Any, Any]) -> bool:
    """Whether no two elements share memory."""
    reach = raw.itemsize
    for step, n in sorted(zip(map(abs, raw.strides), raw.shape, strict=True)):
        if n > 1:
            if step < reach:
                return False
            reach += step * (n - 1)
    return True


_INTEGERS: Final = ("ii", "uu", "ui")
"""Pairs of integer kinds (values, array) that may be assigned: values wrap around, as in NumPy."""

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
