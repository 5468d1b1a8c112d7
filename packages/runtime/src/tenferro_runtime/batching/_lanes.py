"""A loop over the lanes, in which each lane takes its own branches and ends loops at its own step.

A branch is computed only on the lanes that take it. As a native function, the loop costs the sum of the lanes' costs.
"""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime.batching._records import Flags, Values, batch_of, lane_specs, open_number_of_lanes
from tenferro_runtime.control_flow import primitives
from tenferro_runtime.ir import _source
from tenferro_runtime.ir._interpret import recording
from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Program, inner_programs
from tenferro_runtime.runtime import current_runtime
from tenferro_runtime.tracing._staged import staged
from tenferro_runtime.tracing._traced import is_traced
from tenferro_tensor import Op, Spec, catalog
from tenferro_tensor_core import Dim, DimLike, UnsupportedError

BODIES: Final[BoundedCache[Any, Program]] = BoundedCache("tenferro_runtime: operations on one lane", 1024)
"""Programs of single ops, by op, specs of operands, and which operands differ between lanes."""


def lane_by_lane(op: Op, size: DimLike, values: Values, batched: Flags) -> Any:
    """The outputs of an op for all lanes, by a loop over them.

    Args:
        op: the op.
        size: number of lanes.
        values: the operands.
        batched: which of them have a lane axis.

    Returns:
        The outputs, with lane axes.

    Raises:
        UnsupportedError: the op defines a data-dependent size, which would differ between lanes.
    """
    if op.primitive is catalog.define_size:
        raise UnsupportedError(
            f"{op.params['size']} is a size that depends on data, and under vmap it would differ between the lanes; "
            "keep the full extent and mask with where(), or take this step out of the mapped function"
        )
    lanes = lane_specs(values, batched)
    body = _body(op, lanes, batched)
    fixed = [v for v, lanes in zip(values, batched, strict=True) if not lanes]
    sliced = [v for v, lanes in zip(values, batched, strict=True) if lanes]
    if any(map(is_traced, values)) or body.symbolic or isinstance(size, Dim):
        found = _scan(body, size, [*fixed, *sliced], len(fixed))
    else:
        found = _program(body, len(fixed)).run(*fixed, *sliced)
    many = isinstance(op.infer(*lanes), tuple)
    return found if many else found[0]


def _scan(body: Program, size: DimLike, operands: list[Any], consts: int) -> tuple[Any, ...]:
    op = primitives.scan.op(body=body, consts=consts, carry=0, length=size, reverse=False)
    recorder = next((b for b in map(recording, operands) if b is not None), None)
    if recorder is None:
        return op(*operands)  # type: ignore[no-any-return]
    before = recorder.blame
    recorder.blame = _source.lane_by_lane(before or _source.user_line())
    try:
        return op(*operands)  # type: ignore[no-any-return]
    finally:
        recorder.blame = before


def _body(op: Op, lanes: list[Spec], batched: Flags) -> Program:
    """A program of the op on one lane: takes the shared operands, then those of the lane."""
    held = inner_programs(op.params)
    key = ("lane by lane", op, tuple(lanes), batched)
    found: Program | None = held[0].memo.get(key) if held else BODIES.get(key)
    if found is None:
        order = sorted(range(len(lanes)), key=lambda i: batched[i])

        def on_one(*xs: Any) -> Any:
            out = op(*[xs[order.index(i)] for i in range(len(lanes))])
            return out if out.__class__ is tuple else (out,)

        found = current_runtime().optimise(staged(on_one, [lanes[i] for i in order]).program)
        if held:
            held[0].memo[key] = found
        else:
            BODIES.put(key, found)
    return found


@kept
def _program(body: Program, consts: int) -> Program:
    """The loop over the lanes as a program for any number of lanes, which becomes native code."""
    size = open_number_of_lanes()
    specs = [s if i < consts else batch_of(s, size) for i, s in enumerate(body.inputs)]
    return current_runtime().optimise(staged(lambda *xs: _scan(body, size, list(xs), consts), specs).program)
