"""The programs that a step runs (bodies of loops, branches, called programs), and the cost of steps that run some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tenferro_runtime.control_flow._in_place import overwritten_by_while, overwritten_carries
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.costs._costs import MODELS, Specs, cost_of_steps
from tenferro_runtime.costs._memory import plan_memory
from tenferro_runtime.costs._storage import nbytes
from tenferro_runtime.ir._call import PART, call, instance
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.lowering.rolling import is_rolled
from tenferro_runtime.passes.schedule import extent_in_trace
from tenferro_runtime.running._execute import lowered
from tenferro_tensor import Cost, Primitive, Spec
from tenferro_tensor_core import DimLike, dim_max


class Inside(NamedTuple):
    """A program that a step runs.

    Attributes:
        title: its role in the step: ``"body"``, ``"body of a Python loop"``, ``"condition"``, ``"branch 0"`` or
            ``"program"``.
        program: the program.
        times: how often it runs; ``None`` if that depends on data.
        carried: bytes carried between iterations.
        donated: positions of inputs that it overwrites.
        most: largest number of runs, if their number depends on data.
    """

    title: str
    program: Program
    times: DimLike | None = None
    carried: DimLike = 0
    donated: tuple[int, ...] = ()
    most: DimLike | None = None


def programs_inside(eq: Equation) -> tuple[Inside, ...]:
    """The programs that a step runs; empty for a step that is one kernel."""
    return _programs(eq.op.primitive, eq.op.params)


def _programs(p: Primitive, params: Mapping[str, Any]) -> tuple[Inside, ...]:
    if p is scan:
        body, consts, carry = params["body"], params["consts"], params["carry"]
        carried = _bytes(body.inputs[consts : consts + carry])
        title = "body of a Python loop" if is_rolled(body) else "body"
        return (Inside(title, body, params["length"], carried, overwritten_carries(body, consts, carry)),)
    if p is while_loop:
        condition, body, most = params["cond"], params["body"], params["max_steps"]
        which = overwritten_by_while(condition, body, params["consts"])
        return (
            Inside("condition", condition, most=most),
            Inside("body", body, carried=_bytes(body.outputs), donated=which, most=most),
        )
    if p is cond:
        return tuple([Inside(f"branch {k}", branch) for k, branch in enumerate(params["branches"])])
    if p is call and PART not in params["program"].memo:
        program, sizes = params["program"], params.get("sizes")
        return (Inside("program", instance(program, sizes) if sizes else program, 1),)
    return ()


def _cost(p: Primitive, ins: Specs, outs: Specs, **params: Any) -> Cost:
    inside = _programs(p, params)
    if not inside:  # a part, whose intermediate results do not reach memory
        return Cost(cost_of_steps(params["program"]).flops)
    if p is scan or p is while_loop:
        return _loop(inside[-1])
    made = _bytes(outs)
    found = [cost_of_steps(each.program) for each in inside]
    flops = [c.flops for c in found if c.flops is not None]
    return Cost(  # of the most expensive branch
        dim_max(*flops) if len(flops) == len(found) else None,
        dim_max(*[c.bytes for c in found if c.bytes is not None]),
        dim_max(*[dim_max(_peak(each) - made, 0) for each in inside]),  # at least, in addition to the results
    )


def _loop(body: Inside) -> Cost:
    """All iterations, or one if their number is unknown. The previous carry is alive together with the new one."""
    once, n = cost_of_steps(lowered(body.program), body.donated), body.times
    flops = None if once.flops is None or n is None else n * once.flops
    return Cost(flops, once.bytes if once.bytes is None or n is None else n * once.bytes, _peak(body))


def _peak(inside: Inside) -> DimLike:
    """Peak of the bytes that are alive in the steps of a program; with symbolic sizes, those of the step that has the
    most for the sizes of the trace."""

    def in_trace(n: DimLike) -> int:
        return n if isinstance(n, int) else extent_in_trace(n, inside.program.examples)

    return max(plan_memory(lowered(inside.program), inside.donated).live, key=in_trace, default=0)


def _bytes(specs: Sequence[Spec]) -> DimLike:
    return sum([nbytes(s) for s in specs])


MODELS.update({p: partial(_cost, p) for p in (call, cond, scan, while_loop)})
