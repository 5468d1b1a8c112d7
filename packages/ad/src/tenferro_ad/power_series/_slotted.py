"""The Laplacian of a program with compressed Jacobians: see `_slots`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_ad._zeros import zeros_like
from tenferro_ad.power_series._coefficients import Coefficients
from tenferro_ad.power_series._mean import first_lane, mean_over_lanes
from tenferro_ad.power_series._series import coefficients_of, series
from tenferro_ad.power_series._slots import SlotChoice, SlotPlan, SlotStep
from tenferro_runtime import asarray, ones_like, take_along_axis, vmap, where, zeros
from tenferro_runtime.extension import Equation, Literal, Program, interpret
from tenferro_tensor import catalog, next_level

PLANS_MAX: Final = 32
"""Bound of the cache of plans of one function."""


class SlotPlans:
    """Plans of the programs of a function, by structure."""

    def __init__(self) -> None:
        self._kept: dict[Any, SlotPlan] = {}

    def of(self, program: Program, sizes: tuple[int, ...]) -> SlotPlan:
        """The plan of a program whose first inputs hold variables, with these sizes."""
        key = (sizes, _structure(program))
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= PLANS_MAX:
                self._kept.clear()
            found = self._kept[key] = SlotPlan(program, sizes)
        return found


def _structure(program: Program) -> tuple[Any, ...]:
    """A key that is equal for programs with the same plan; integer constants count, because they may be indices."""
    numbers: dict[int, int] = {}
    constants = []
    for v, x in program.constants.items():
        numbers[v] = len(numbers)
        constants.append((x.spec, None if x.spec.inexact else x.numpy().tobytes()))
    for v in program.input_ids:
        numbers[v] = len(numbers)
    equations = []
    for eq in program.equations:
        read = tuple([repr(v.value) if isinstance(v, Literal) else numbers[v] for v in eq.operands])
        for v in eq.results:
            numbers[v] = len(numbers)
        equations.append((eq.op, read))
    return program.inputs, tuple(constants), tuple(equations), tuple([numbers[v] for v in program.output_ids])


class Slotted(NamedTuple):
    """A value with its derivatives.

    Attributes:
        value: the value.
        first: its derivatives, with a leading axis of slots.
        second: the sum of its second coefficients over all variables; ``None`` for zero.
    """

    value: Any
    first: Any
    second: Any


def run_slotted(program: Program, plan: SlotPlan, values: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    """For each output, its value, its derivatives in all variables (leading axis), and its Laplacian.

    Args:
        program: the program, whose first inputs hold the variables.
        plan: its plan.
        values: values of all inputs.
    """
    ins = [
        Slotted(x, catalog.reshape(ones_like(x), shape=(1, *x.spec.shape)), None) if i < plan.arguments else x
        for i, x in enumerate(values)
    ]
    following = iter(plan.steps)
    outs = interpret(program, ins, apply=lambda eq, operands: tuple(_results(eq, next(following), operands)))
    found = []
    for x, pick in zip(outs, plan.outputs, strict=True):
        if isinstance(x, Slotted):
            rows = _picked(x.first, pick, plan.total)
            found.append((x.value, rows, zeros_like(x.value) if x.second is None else x.second * 2.0))
        else:
            nothing = zeros_like(x)
            found.append((x, zeros((plan.total, *x.spec.shape), dtype=x.spec.dtype), nothing))
    return found


def _results(eq: Equation, step: SlotStep, ins: list[Any]) -> Sequence[Any]:
    bare = [x.value if isinstance(x, Slotted) else x for x in ins]
    if not step.number:
        out = eq.op(*bare)
        return out if isinstance(out, tuple) else (out,)
    if step.target is not None:
        return [_summed(eq, step, ins[0])]
    places = [i for i, pick in enumerate(step.picks) if pick is not None]
    firsts = [_picked(ins[i].first, step.picks[i], step.number) for i in places]

    def lanes(*directions: Any) -> Any:
        level, inner = next_level(), directions[0].level
        operands = list(bare)
        for i, direction in zip(places, directions, strict=True):
            second = ins[i].second
            terms = [bare[i], direction, *([] if second is None else [second * (1 / step.number)])]
            operands[i] = series(Coefficients(terms, 2), level, 2)
        out = eq.op(*operands)
        outs = list(out) if isinstance(out, tuple) else [out]
        terms_of = [coefficients_of(y, level) for y in outs]
        made = [first_lane(y if x is None else x[0], inner) for x, y in zip(terms_of, outs, strict=True)]
        there[:] = [x is not None and x[2] is not None for x in terms_of]
        first = [zeros_like(z) if x is None or x[1] is None else x[1] for x, z in zip(terms_of, made, strict=True)]
        second = [
            zeros_like(z) if x is None or x[2] is None else mean_over_lanes(x[2], inner)
            for x, z in zip(terms_of, made, strict=True)
        ]
        return made, first, second

    there: list[bool] = []
    made, first, second = vmap(lanes, out_axes=(None, 0, None))(*firsts)
    return [
        Slotted(z, a, b * float(step.number) if has else None) if z.spec.inexact else z
        for z, a, b, has in zip(made, first, second, there, strict=True)
    ]


def _picked(first: Any, pick: SlotChoice | None, count: int) -> Any:
    """Derivatives in the slots of a result."""
    if pick is None or (pick.slots is None and pick.there is None):
        return first
    shape = first.spec.shape[1:]
    flat = catalog.reshape(first, shape=(first.spec.shape[0], int(np.prod(shape, dtype=np.int64))))
    if pick.slots is not None:
        flat = take_along_axis(flat, asarray(pick.slots), axis=0)
    if pick.there is not None:
        flat = where(asarray(pick.there), flat, 0.0)
    return catalog.reshape(flat, shape=(count, *shape))


def _summed(eq: Equation, step: SlotStep, x: Slotted) -> Slotted:
    value = eq.op(x.value)
    assert step.target is not None
    size = int(value.spec.size)
    flat = zeros((step.number * size + 1,), dtype=value.spec.dtype)
    flat = flat.at[asarray(step.target.reshape(-1))].add(catalog.reshape(x.first, shape=(step.target.size,)))
    first = catalog.reshape(flat[:-1], shape=(step.number, *value.spec.shape))
    return Slotted(value, first, None if x.second is None else eq.op(x.second))
