"""`scan` and `while_loop` under one description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tenferro_runtime.control_flow.primitives import scan, while_loop
from tenferro_runtime.extension import Program
from tenferro_tensor import Op, Spec
from tenferro_tensor_core import DimLike


class Loop(NamedTuple):
    """A loop.

    Attributes:
        body: program from the constants, the carry and the slices of a step to the carry and rows.
        consts: number of constants.
        carry: number of carries.
        cond: the condition of a `while_loop`; ``None`` for a `scan`.
        length: number of steps of a `scan`; ``None`` for a `while_loop`, which has neither slices nor rows.
        reverse: whether the first step takes the last slice.
        max_steps: maximum number of steps of a `while_loop`, or ``None``.
    """

    body: Program
    consts: int
    carry: int
    cond: Program | None = None
    length: DimLike | None = None
    reverse: bool = False
    max_steps: DimLike | None = None

    @property
    def outputs(self) -> tuple[Spec, ...]:
        """Specs of the results: the last carry, then rows of all steps."""
        last, rows, n = self.body.outputs[: self.carry], self.body.outputs[self.carry :], self.length
        return last if n is None else (*last, *[s.with_(shape=(n, *s.shape)) for s in rows])

    @property
    def op(self) -> Op:
        """The loop as an operation."""
        primitive = scan if self.cond is None else while_loop
        return primitive.op(**{name: getattr(self, name) for name in primitive.metadata})


def loop_of(params: Mapping[str, Any]) -> Loop:
    """The loop that the metadata of an operation describe."""
    given = {name: params[name] for name in Loop._fields if name in params}
    return Loop(**{"carry": len(params["body"].output_ids), **given})
