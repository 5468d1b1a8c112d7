"""A loop whose body is one fused region: the backend may carry out all of its steps in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenferro_runtime.ir._program import Program
from tenferro_runtime.running._execute import lowered
from tenferro_tensor import get_backend
from tenferro_tensor_core.forks import importing

if TYPE_CHECKING:
    from tenferro_tensor.device_model import Region


class Recurrence(NamedTuple):
    """A body as a region, and where everything goes.

    Attributes:
        region: the region.
        device: kind of device that it runs on.
        operands: for each input of the region the input of the body, or a constant.
        back: for each input of the region the output that it is of the step before, if so.
        moving: for each input of the region, whether it is a slice.
        carry: for each carry the output of the region that it becomes.
        rows: for each row the output of the region that it is; ``~j`` for carry `j` before the step.
        kept: which outputs of the region are needed of all steps.
    """

    region: Region
    device: str
    operands: tuple[Any, ...]
    back: tuple[int | None, ...]
    moving: tuple[bool, ...]
    carry: tuple[int, ...]
    rows: tuple[int, ...]
    kept: tuple[bool, ...]

    def build(self, consts: int, reverse: bool, otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
        """The loop as a function of the number of steps, and then of what `otherwise` takes; None where there is none.

        Args:
            consts: number of constants of the body.
            reverse: whether it goes from the last slice to the first.
            otherwise: does the same step by step.
        """
        run = get_backend(self.device).looped(self.region, self.back, self.moving)
        if run is None:
            return None
        operands, kept, carry, rows = self.operands, self.kept, self.carry, self.rows

        def loop(step: Any, n: int, shapes: Any, *raws: Any) -> Any:
            xs = [raws[v] if v.__class__ is int else v for v in operands]
            outs = run(n, reverse, kept, *xs)
            if outs is None:
                return otherwise(step, n, shapes, *raws)
            last = 0 if reverse else -1
            found = [outs[k][last].copy() if kept[k] else outs[k] for k in carry]
            for k in rows:
                found.append(outs[k] if k >= 0 else _before(outs[carry[~k]], raws[consts + ~k], reverse))
            return tuple(found)

        return loop


def _before(after: Any, start: Any, reverse: bool) -> Any:
    """The values of a carry before each step."""
    first = np.asarray(start)[None]
    return np.concatenate((after[1:], first) if reverse else (first, after[:-1]))


def recurrence(body: Program, consts: int, carry: int) -> Recurrence | None:
    """The body of a scan as a recurrence, or None where it is none."""
    program = lowered(body)
    with importing():
        from tenferro_runtime.fusion import fused
        from tenferro_runtime.fusion._region import region_of
    if len(program.equations) != 1 or program.equations[0].op.primitive is not fused:
        return None
    (eq,) = program.equations
    region = region_of(eq.op.params["program"])
    made = {v: k for k, v in enumerate(eq.results)}
    place = {v: i for i, v in enumerate(program.input_ids)}
    ends, rest = program.output_ids[:carry], program.output_ids[carry:]
    if region.kernel.reduction is not None or not all(v in made for v in ends):
        return None
    carried = {program.input_ids[consts + j]: j for j in range(carry)}
    if not all(v in made or v in carried for v in rest) or len({*ends}) < carry or len({*rest}) < len(rest):
        return None
    back = tuple([made[ends[carried[v]]] if v in carried else None for v in eq.variables])
    rows = tuple([made[v] if v in made else ~carried[v] for v in rest])
    wanted = {k if k >= 0 else made[ends[~k]] for k in rows}
    return Recurrence(
        region,
        program.specs[eq.results[0]].place.device.kind,
        tuple([place[v] if v in place else program.constants[v]._data for v in eq.variables]),
        back,
        tuple([v in place and place[v] >= consts + carry for v in eq.variables]),
        tuple([made[v] for v in ends]),
        rows,
        tuple([k in wanted for k in range(len(eq.results))]),
    )
