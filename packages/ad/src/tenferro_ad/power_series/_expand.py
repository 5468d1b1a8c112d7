"""Runs an op on series by its Taylor rule."""

from __future__ import annotations

from typing import Any

from tenferro_ad._scopes import by_scope
from tenferro_ad.power_series._coefficients import Coefficients, Mapped, constant, streamed
from tenferro_ad.power_series._kinds import directly, recurrence_of
from tenferro_ad.power_series._series import Series, coefficients_of, series
from tenferro_tensor import SCALARS, Op, Spec
from tenferro_tensor.calls import state
from tenferro_tensor.promotion import brought, describe, materialised, targets


def expand(level: int, op: Op, operands: tuple[Any, ...]) -> Any:
    """Run an op on series.

    Args:
        level: the highest level among the operands, that of a series.
        op: the op.
        operands: its operands.
    """
    found = [coefficients_of(a, level) for a in operands]
    values = [a if x is None else a.value for a, x in zip(operands, found)]
    if state.recording_scopes:
        scoped = by_scope(level, op, operands, values)
        if scoped is not None:
            return scoped
    if not op.primitive.elementwise:
        operands, values = materialised(operands), list(materialised(tuple(values)))
    run = directly(op, operands)
    if run is not None:
        return run()
    need = tuple([i for i, x in enumerate(found) if x is not None])
    xs = [constant(a) if x is None else x for a, x in zip(values, found)]
    if op.primitive.elementwise:
        xs = [_brought(x, goal) for x, goal in zip(xs, targets(op, describe(tuple(values))))]
    recurrence = recurrence_of(op, xs, need)
    if recurrence is None:
        return op(*values)
    like = operands[need[0]]
    results = [_result(out, like) for out in streamed(recurrence.terms, recurrence.outputs)]
    return results[0] if recurrence.outputs is None else tuple(results)


def _brought(x: Coefficients, goal: Spec) -> Coefficients:
    value = x[0]
    if value.__class__ in SCALARS or (value.spec.shape == goal.shape and value.spec.dtype == goal.dtype):
        return x
    return Mapped(x, lambda k, term: brought(term, goal))


def _result(out: Coefficients, like: Series) -> Any:
    """An output as a value: a constant if all its higher coefficients are zero, or if it is not inexact."""
    if not out[0].spec.inexact:
        return out[0]
    if like.order is None:
        return series(out, like.level)
    done = out.forced(like.order)
    if len(done.terms) == 1:
        return done.terms[0]
    if like.collapse is not None and len(done.terms) > like.order:
        done.terms[-1] = like.collapse(done.terms[-1])
    return series(done, like.level, like.order, like.collapse)


Series.interpreter = expand
