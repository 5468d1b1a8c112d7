"""Taylor rules of `call` and `checkpointed`: a call of the program on coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_ad._checkpoint import checkpointed
from tenferro_ad.power_series._coefficients import Coefficients
from tenferro_ad.power_series._derived import Recurrence
from tenferro_ad.power_series._kinds import DIRECT, PROGRAMS
from tenferro_ad.power_series._programs import Found, for_call, orders_of, outranked, recomputed, with_terms
from tenferro_runtime.extension import call
from tenferro_runtime.ir import chosen, definitions, interpret, named, sizes_for
from tenferro_tensor import Op


def _called(op: Op, xs: list[Coefficients], need: tuple[int, ...]) -> Recurrence:
    program = op.params["program"]
    values = [x[0] for x in xs]
    sizes = named(program, sizes_for(program, [v.spec for v in values], op.params["sizes"]))

    def run(order: int) -> Found:
        if order == 0:
            return [[y] for y in op(*values)]
        given = tuple([orders_of(x, order) for x in xs])
        made = for_call(program, given, order, sizes)
        outs = op.primitive(*with_terms(xs, given), program=made.program, sizes=chosen(made.program, sizes))
        terms = made.outputs(outs, order)
        if outranked(xs, given):
            terms = [[y, *rest[1:]] for y, rest in zip(op(*values), terms)]
        return terms

    return Recurrence(recomputed(run, xs, need), len(program.output_ids))


def _interpret(op: Op, operands: tuple[Any, ...]) -> Callable[[], Any] | None:
    """Run a program with data-dependent sizes step by step."""
    program = op.params["program"]
    if not definitions(program):
        return None
    sizes = named(program, sizes_for(program, [x.spec for x in operands], op.params["sizes"]))
    return lambda: interpret(program, operands, sizes)


for primitive in (call, checkpointed):
    PROGRAMS[primitive] = _called
    DIRECT[primitive] = _interpret
