"""The programs that a step runs (bodies of loops, branches, called programs), and how often."""

from __future__ import annotations

from typing import NamedTuple

from tenferro_runtime.control_flow._in_place import overwritten_by_while, overwritten_carries
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.costs._storage import nbytes
from tenferro_runtime.ir._call import call, instance, is_part
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.rolling import is_rolled
from tenferro_tensor import Spec
from tenferro_tensor_core import DimLike


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
    times: DimLike | None
    carried: DimLike = 0
    donated: tuple[int, ...] = ()
    most: DimLike | None = None


def programs_inside(eq: Equation) -> tuple[Inside, ...]:
    """The programs that a step runs; empty for a step that is one kernel."""
    params = eq.op.params
    p = eq.op.primitive
    if p is scan:
        body, consts, carry = params["body"], params["consts"], params["carry"]
        carried = _bytes(body.inputs[consts : consts + carry])
        title = "body of a Python loop" if is_rolled(body) else "body"
        return (Inside(title, body, params["length"], carried, overwritten_carries(body, consts, carry)),)
    if p is while_loop:
        condition, body, consts = params["cond"], params["body"], params["consts"]
        which = overwritten_by_while(condition, body, consts)
        most = params["max_steps"]
        asked = Inside("condition", condition, None, most=most)
        return asked, Inside("body", body, None, _bytes(body.outputs), which, most)
    if p is cond:
        return tuple([Inside(f"branch {k}", branch, None) for k, branch in enumerate(params["branches"])])
    if p is call and not is_part(eq):
        program, sizes = params["program"], params["sizes"]
        return (Inside("program", instance(program, sizes) if sizes else program, 1),)
    return ()


def _bytes(specs: tuple[Spec, ...]) -> DimLike:
    return sum([nbytes(s) for s in specs])
