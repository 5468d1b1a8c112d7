"""Views: values with a link to their base, so that a write to a view is a write to the base and to its other views.

A concrete tensor and its views show one memory, which is written in place. Other values cannot be: their views hold the
base and the steps that lead from it to the view. A write takes these steps back, which updates the base, and derives
the other views again. Both kinds of views form a ring with their base (`calls.kin`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tenferro_tensor._readings import covering, steps_of
from tenferro_tensor._shown import is_shown
from tenferro_tensor._steps import Step
from tenferro_tensor.calls import ValueBase, in_one, kin, link, state, unlink
from tenferro_tensor.direct import ANY_SIZE, direct

T = TypeVar("T", bound=Any)

__all__ = ["linked", "replace", "replace_base", "view"]


def __dir__() -> list[str]:
    return __all__.copy()


_F = TypeVar("_F", bound=Callable[..., Any])


def view(
    form: Callable[..., Any],
    put: Callable[..., Any],
    raw: Callable[..., Any] | None = None,
    *,
    moves: bool = False,
    contiguous: bool = False,
) -> Callable[[_F], _F]:
    """Give a function whose result is a view of its first argument the link to it, and a direct form.

    Args:
        form: the function on raw arrays; see `direct`.
        put: see `_steps.Step`.
        raw: see `_steps.Step`; by default NumPy's function of this name.
        moves: see `_steps.Step`.
        contiguous: see `_steps.Step`.

    Returns:
        A decorator.
    """

    def decorate(function: _F) -> _F:
        of_raw = raw or getattr(np, function.__name__)
        plain = Step(function, put, of_raw, moves=moves, contiguous=contiguous)

        @wraps(function)
        def shown(x: Any, /, *args: Any, **named: Any) -> Any:
            z = function(x, *args, **named)
            if named.get("copy"):
                return z
            if not args and not named:
                return linked(x, z, plain)
            return linked(x, z, Step(function, put, of_raw, args, named, moves=moves, contiguous=contiguous))

        return direct(form, ANY_SIZE, views=True)(shown)  # type: ignore[return-value]

    return decorate


def linked(x: Any, z: T, step: Step) -> T:
    """Link a view to its base; results without axes are values, as NumPy's scalars are.

    Args:
        x: the base, or a view of it.
        z: the result of `step` on `x`.
        step: the step.

    Returns:
        `z`.
    """
    if z is x or not isinstance(x, ValueBase) or not z.spec.ndim:
        return z
    if z.__class__ is x.__class__ is state.tensor:
        if in_one(z._inside, x._inside) and not (step.contiguous and not x._inside.flags.c_contiguous):
            if z._inside is x._inside:
                z._data = x._inside[...]  # type: ignore[attr-defined]  # each raw array has one holder
            link(z, x)
            return z
        if step.moves:
            return z
    elif step.moves and not is_shown(x, z, step.contiguous):
        return z
    base, steps = x._view or (x, ())
    link(z, base)
    z._view = base, (*steps, step)
    return z


def replace(x: Any, updated: Any) -> None:
    """Make `updated` the value of `x`, and update its base and the other views of the base with it.

    Args:
        x: value.
        updated: value of the same shape and dtype.
    """
    if len(kin(x)) == 1:
        unlink(x)
        x._go_over(updated)
        return
    base = _based(x)
    steps = () if x is base else x._view[1]
    _renew(base, x, updated, _taken_back(base, steps, updated))


def replace_base(x: Any, update: Callable[[Any], Any]) -> None:
    """Update the base of a view, and derive the views again.

    Args:
        x: a view.
        update: the updated base for the base.
    """
    base = _based(x)
    _renew(base, None, None, update(base))


def _taken_back(base: Any, steps: tuple[Step, ...], updated: Any) -> Any:
    """The base after the value behind some steps has become `updated`."""
    passed = [base]
    for step in steps[:-1]:
        passed.append(step.of(passed[-1]))
    for step, before in zip(reversed(steps), reversed(passed)):
        updated = step.into(before, updated)
    return updated


def _renew(base: Any, written: Any, updated: Any, new: Any) -> None:
    """Give a base its new value, and its views what they show of it; `written` shows `updated`."""
    views = [v for v in kin(base) if v is not base]
    for v in views:
        if v._view is None:  # of memory, and made by another thread since the others got their steps
            v._view = base, steps_of(v._data, base._data)
    if base is not written:
        base._go_over(new)
    for v in views:
        if v is not written:
            found = new
            for step in v._view[1]:
                found = step.of(found)
            v._go_over(found)
    if written is not None:
        written._go_over(updated)


def _based(x: Any) -> Any:
    """The base of a ring, after each of its views has its steps; those of memory are read off their strides."""
    members = kin(x)
    base = next((v._view[0] for v in members if v._view is not None), None)
    if base is None:
        base = covering(members)
        link(base, x)
    for v in members:
        if v is not base and v._view is None:
            v._view = base, steps_of(v._data, base._data)
    return base
