"""Branches and loops on concrete lanes: lanes that take the same branch are computed together.

The lanes of a branch are gathered from the batch, computed at once, and scattered back; lanes that have left a loop do
not take part in its further steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.batching._batched import Batched, batched
from tenferro_runtime.batching._lanes import lane_by_lane
from tenferro_runtime.batching._records import Flags, Values, all_with_lanes, with_lanes
from tenferro_runtime.ir._interpret import interpret
from tenferro_runtime.ir._program import Program
from tenferro_runtime.tracing._traced import innermost, is_traced
from tenferro_tensor import Op, catalog, next_level
from tenferro_tensor.functions import asarray, concat
from tenferro_tensor.operands import own

MAX_JOINT_STEPS: Final = 64
"""Number of steps that the lanes of a loop run together; lanes that continue run one by one, in native code."""


def by_branch(index: Any, branches: Sequence[Program], size: int, values: Values, batched: Flags) -> list[Any]:
    """Run each branch on the lanes that choose it; the results have a lane axis.

    Args:
        index: the branch of each lane, concrete.
        branches: programs of one lane.
        size: the number of lanes, at least 1.
        values: the operands of the branches.
        batched: which of them have a lane axis.
    """
    chosen = np.clip(_known(index).astype(np.int64), 0, len(branches) - 1)
    groups = [(branch, np.flatnonzero(chosen == k)) for k, branch in enumerate(branches)]
    made = [(at, _run(b, len(at), _taken(values, batched, at, size), batched)) for b, at in groups if len(at)]
    return _together(made, size)


def by_rounds(op: Op, size: int, values: Values, batched: Flags) -> list[Any] | None:
    """Run a loop on the lanes that continue; ``None`` if the condition is not concrete.

    Args:
        op: the loop.
        size: the number of lanes, at least 1.
        values: the operands.
        batched: which of them have a lane axis.
    """
    cond, body, consts, max_steps = (op.params[name] for name in ("cond", "body", "consts", "max_steps"))
    flags = (*batched[:consts], *[True] * (len(values) - consts))
    state = (*values[:consts], *all_with_lanes(size, values[consts:], batched[consts:]))
    there = np.arange(size)
    done: list[tuple[Any, list[Any]]] = []
    rounds = 0
    while len(there):
        left = None if max_steps is None else max_steps - rounds
        (goes_on,) = _run(cond, len(there), state, flags)
        if is_traced(goes_on):
            return None
        stays = np.zeros(len(there), bool) if left == 0 else _known(goes_on)
        if not stays.all():
            done.append((there[~stays], _taken(state, flags, np.flatnonzero(~stays), len(there))[consts:]))
            state = tuple(_taken(state, flags, np.flatnonzero(stays), len(there)))
            there = there[stays]
        if rounds == MAX_JOINT_STEPS and len(there):
            rest = op.primitive.op(**{**op.params, "max_steps": left})
            done.append((there, list(lane_by_lane(rest, len(there), state, flags))))
            break
        if len(there):
            state = (*state[:consts], *_run(body, len(there), state, flags))
        rounds += 1
    return _together(done, size)


def _known(x: Any) -> Any:
    return np.asarray(innermost(x)._concrete())


def _run(program: Program, size: int, values: Sequence[Any], flags: Flags) -> list[Any]:
    """Run a program of one lane on a batch; all results have a lane axis."""
    level = next_level()
    inputs = [batched(v, level) if lanes else v for v, lanes in zip(values, flags, strict=True)]
    outs = [asarray(x) for x in interpret(program, inputs)]
    return [x.value if x.__class__ is Batched and x.level == level else with_lanes(size, x) for x in outs]


def _taken(values: Sequence[Any], flags: Flags, at: Any, size: int) -> list[Any]:
    if len(at) == size:
        return list(values)
    return [_rows(v, at) if there else v for v, there in zip(values, flags, strict=True)]


def _rows(x: Any, at: Any) -> Any:
    """The rows of an array at indices that are known to be in range."""
    shape = x.spec.shape
    return catalog.gather(
        x,
        own(at.reshape(-1, 1).copy(), x.spec.place),
        offset_dims=tuple(range(1, len(shape))),
        collapsed_dims=(0,),
        start_index_map=(0,),
        slice_sizes=(1, *shape[1:]),
    )


def _together(groups: Sequence[tuple[Any, Sequence[Any]]], size: int) -> list[Any]:
    """The results of groups of lanes in the order of the lanes."""
    if len(groups) == 1:
        return list(groups[0][1])
    order = np.empty(size, np.int64)
    order[np.concatenate([at for at, _ in groups])] = np.arange(size)
    return [_rows(concat(list(column)), order) for column in zip(*[outs for _, outs in groups], strict=True)]
