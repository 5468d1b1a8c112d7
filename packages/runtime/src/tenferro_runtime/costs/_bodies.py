"""The cost of steps that run programs: calls, branches and loops, computed from the programs inside."""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_runtime.control_flow._in_place import overwritten_by_while, overwritten_carries
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.costs._costs import MODELS, Specs, cost_of_steps
from tenferro_runtime.costs._memory import plan_memory
from tenferro_runtime.costs._storage import nbytes
from tenferro_runtime.ir._call import PART, call, instance
from tenferro_runtime.ir._program import Program
from tenferro_runtime.running._execute import lowered
from tenferro_tensor import Cost
from tenferro_tensor_core import Dim, DimLike, dim_max, evaluate


def peak_of_steps(program: Program, donated: Sequence[int] = ()) -> DimLike:
    """Peak of the bytes that are alive in the steps of a program; with symbolic sizes, those of the step that has the
    most for the sizes of the trace."""
    live = plan_memory(lowered(program), donated).live

    def in_trace(n: DimLike) -> int:
        names = n.variables if isinstance(n, Dim) else ()
        return evaluate(n, {name: program.examples.get(name, 64) for name in names})

    return max(live, key=in_trace, default=0)


def _called(ins: Specs, outs: Specs, *, program: Program, sizes: tuple[DimLike, ...] = ()) -> Cost:
    is_part = PART in program.memo
    program = instance(program, sizes) if sizes else program
    if is_part:  # intermediate results do not reach memory
        return Cost(cost_of_steps(program).flops)
    return cost_of_steps(program)._replace(workspace=_beyond_results(peak_of_steps(program), outs))


def _beyond_results(peak: DimLike, outs: Specs) -> DimLike:
    """A lower bound of the bytes that are alive in a program in addition to its results."""
    return dim_max(peak - sum([nbytes(s) for s in outs]), 0)


def _branches(ins: Specs, outs: Specs, *, branches: tuple[Program, ...]) -> Cost:
    """The cost of the most expensive branch."""
    found = [_called(b.inputs, outs, program=b) for b in branches]
    flops = [c.flops for c in found if c.flops is not None]
    return Cost(
        dim_max(*flops) if len(flops) == len(found) else None,
        dim_max(*[c.bytes for c in found if c.bytes is not None]),
        dim_max(*[c.workspace for c in found]),
    )


def _scan(ins: Specs, outs: Specs, *, body: Program, consts: int, carry: int, length: DimLike, reverse: bool) -> Cost:
    """The body `length` times. During a step, the previous carry is alive together with the new one."""
    which = overwritten_carries(body, consts, carry)
    once = cost_of_steps(lowered(body), which)
    flops = None if once.flops is None else length * once.flops
    return Cost(flops, None if once.bytes is None else length * once.bytes, peak_of_steps(body, which))


def _while(ins: Specs, outs: Specs, *, cond: Program, body: Program, consts: int, max_steps: DimLike | None) -> Cost:
    """One iteration, because their number is unknown."""
    which = overwritten_by_while(cond, body, consts)
    return Cost(None, cost_of_steps(lowered(body), which).bytes, peak_of_steps(body, which))


MODELS[call], MODELS[cond], MODELS[scan], MODELS[while_loop] = _called, _branches, _scan, _while
