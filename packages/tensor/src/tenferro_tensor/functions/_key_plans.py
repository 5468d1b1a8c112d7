"""Plans of index keys with arrays of known elements, made once for each form of a key and spec of an operand."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_tensor._place import HOST
from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor.calls import key_parts, stacked_indices, state
from tenferro_tensor.operands import own
from tenferro_tensor.tables import Table

__all__ = ["KeyForm", "KeyPlan", "form_of", "planned", "remember"]


class KeyForm(NamedTuple):
    """The form of a key whose arrays are known, and these arrays.

    Attributes:
        token: the key, with each index array replaced by its number of axes, and each mask by its shape.
        arrays: the index arrays in order; a mask contributes the positions of its true elements.
    """

    token: tuple[Any, ...]
    arrays: tuple[Any, ...]


class KeyPlan(NamedTuple):
    """How a form of a key indexes operands of one spec.

    Attributes:
        ops: applied first, for everything but the arrays.
        extents: extents of the axes that the arrays index.
        gather: takes the elements at index vectors.
    """

    ops: tuple[Op, ...]
    extents: tuple[int, ...]
    gather: Op


_plans: Final = Table("plans of index keys with arrays")


def form_of(spec: Spec, key: Any) -> KeyForm | None:
    """The form of a key of integers, slices, and known arrays or sequences; None for other keys."""
    if spec.symbolic or spec.place is not HOST:
        return None
    token: list[Any] = []
    arrays: list[Any] = []
    for part in key if key.__class__ is tuple else (key,):
        basic = None if part.__class__ is tuple else key_parts(part)
        if basic is not None:
            token += basic
            continue
        host = _known(part)
        if host is None or not host.ndim:
            return None
        if host.dtype.kind == "b":
            token += ("mask", host.shape)
            arrays += host.nonzero()
        else:
            token += ("array", host.ndim)
            arrays.append(host)
    return KeyForm(tuple(token), tuple(arrays))


def _known(part: Any) -> Any:
    if part.__class__ in (list, tuple, range):
        return np.asarray(part) if set(map(type, part)) == {int} else None
    if part.__class__ is state.tensor:
        part = part._data if part.spec.place is HOST else None
    return part if part.__class__ is np.ndarray and part.dtype.kind in "iub" else None


def planned(x: Any, form: KeyForm) -> Any:
    """``x[key]`` by a remembered plan; ``None`` if there is none or an index is out of bounds."""
    plan = _plans.get((x.spec, form.token))
    if plan is None:
        return None
    vectors = stacked_indices(form.arrays, plan.extents)
    if vectors is None:
        return None
    for op in plan.ops:
        x = op(x)
    return plan.gather(x, own(vectors, HOST))


def remember(spec: Spec, form: KeyForm, plan: KeyPlan) -> None:
    """Remember the plan for operands of a spec."""
    _plans.remember((spec, form.token), plan)
