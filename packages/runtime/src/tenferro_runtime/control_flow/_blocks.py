"""`scan` in blocks: a recorded loop whose body consists of several steps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from tenferro_runtime.control_flow._agreement import require_tree
from tenferro_runtime.control_flow._values import leaf_values
from tenferro_runtime.ir._interpret import recording
from tenferro_runtime.ir._source import here
from tenferro_runtime.trees._tree import flatten, unflatten
from tenferro_tensor.functions import asarray, concat, reshape, stack
from tenferro_tensor_core import ArgumentError

Scan = Callable[..., tuple[Any, Any]]
Step = Callable[[Any, Any], tuple[Any, Any]]


def steps_of(unroll: Any, what: str = "scan") -> int | None:
    """Number of steps that are unrolled: ``None`` for all of them.

    Raises:
        ArgumentError: `unroll` is neither a boolean nor a positive integer.
    """
    if isinstance(unroll, bool):
        return None if unroll else 1
    try:
        count = operator.index(unroll)
    except TypeError:
        count = 0
    if count < 1:
        raise ArgumentError(
            f"{what} unrolls all steps (unroll=True) or a positive number of them in each iteration, "
            f"got {unroll=}{here()}; leave it out for none"
        )
    return count


def keep_written_out(values: Iterable[Any]) -> None:
    """Tell the builders that record values not to roll the unrolled steps into a loop."""
    for value in values:
        builder = recording(value)
        if builder is not None:
            builder.written_out = True


def in_blocks(scan: Scan, f: Step, init: Any, xs: Any, n: Any, count: int, reverse: bool) -> tuple[Any, Any]:
    """A loop over blocks of `count` steps, and another one over the remaining steps.

    Args:
        scan: the loop, without blocks.
        f: one step.
        init: the first carry.
        xs: arrays of leading extent `n`, in any containers.
        n: number of steps: an integer or a size.
        count: steps of a block.
        reverse: go from the last index to the first.
    """
    leaves, tree = flatten(xs)
    blocks = n // count
    end = blocks * count
    first = unflatten(tree, [reshape(x[:end], (blocks, count, *x.shape[1:])) for x in leaves])
    rest = unflatten(tree, [x[end:] for x in leaves])

    def block(carry: Any, slices: Any) -> tuple[Any, Any]:
        parts = flatten(slices)[0]
        rows: list[list[Any]] = []
        made = tree
        for i in reversed(range(count)) if reverse else range(count):
            carry, row = f(carry, unflatten(tree, [part[i] for part in parts]))
            keep_written_out(flatten(carry)[0])
            found, now = flatten(row)
            if rows:
                require_tree("scan", made, "the row of the first step", now, f)
            made = now
            rows.append([asarray(x) for x in leaf_values(found, now, "a row of scan")])
        if reverse:
            rows.reverse()
        return carry, unflatten(made, [stack(list(column)) for column in zip(*rows, strict=True)])

    def whole(carry: Any) -> tuple[Any, Any]:
        carry, rows = scan(block, carry, first, blocks, reverse=reverse)
        found, made = flatten(rows)
        return carry, unflatten(made, [reshape(x, (end, *x.shape[2:])) for x in found])

    if n.__class__ is int and end == n:
        return whole(init)
    if reverse:
        carry, after = scan(f, init, rest, n - end, reverse=True)
        carry, before = whole(carry)
    else:
        carry, before = whole(init)
        carry, after = scan(f, carry, rest, n - end)
    (heads, made), (tails, _) = flatten(before), flatten(after)
    return carry, unflatten(made, [concat([a, b]) for a, b in zip(heads, tails, strict=True)])
