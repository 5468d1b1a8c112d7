"""Taylor rules of `cond`, `while_loop`, `scan` and `budgeted`: branches and loops over coefficients."""

from __future__ import annotations

from typing import Any

from tenferro_ad.power_series._coefficients import Coefficients
from tenferro_ad.power_series._derived import Recurrence
from tenferro_ad.power_series._kinds import PROGRAMS
from tenferro_ad.power_series._programs import (
    Found,
    Orders,
    SeriesProgram,
    for_body,
    orders_of,
    outranked,
    recomputed,
    with_terms,
)
from tenferro_runtime.control_flow.primitives import budgeted, cond, scan, while_loop
from tenferro_runtime.extension import Program, optimise
from tenferro_runtime.ir import applied, kept
from tenferro_runtime.tracing import staged
from tenferro_tensor import Op

Terms = list[Coefficients]


def _merged(a: Orders, b: Orders) -> Orders:
    return tuple(sorted({*a, *b}))


def _values(op: Op, xs: Terms, given: tuple[Orders, ...], terms: list[list[Any]]) -> Found:
    """The coefficients of the outputs, with values computed separately if the coefficients outrank them."""
    if not outranked(xs, given):
        return terms
    return [[y, *rest[1:]] for y, rest in zip(op(*[x[0] for x in xs]), terms, strict=True)]


def _cond(op: Op, xs: Terms, need: tuple[int, ...]) -> Recurrence:
    """The values select the branch."""
    branches = op.params["branches"]

    def run(order: int) -> Found:
        given = tuple([orders_of(x, order) for x in xs])
        made = [for_body(branch, given[1:], order) for branch in branches]
        forced = made[0].orders
        for each in made[1:]:
            forced = tuple(map(_merged, forced, each.orders))
        made = [for_body(branch, given[1:], order, forced) for branch in branches]
        found = cond(*with_terms(xs, given), branches=tuple([each.program for each in made]))
        return _values(op, xs, given, made[0].outputs(found, order))

    return Recurrence(recomputed(run, xs, need), len(branches[0].output_ids))


def _loop(body: Program, given: tuple[Orders, ...], order: int, consts: int, carry: int) -> tuple[SeriesProgram, Any]:
    """The body with coefficients for every leaf of the carry that has them in some step, and all operands' orders."""
    rows = len(body.output_ids) - carry
    while True:
        moving = given[consts : consts + carry]
        made = for_body(body, given, order, (*moving, *[()] * rows))
        if made.orders[:carry] == moving:
            return made, given
        given = (*given[:consts], *made.orders[:carry], *given[consts + carry :])


def _size(given: tuple[Orders, ...]) -> int:
    """Number of operands and coefficients."""
    return sum([1 + len(orders) for orders in given])


def _scan(op: Op, xs: Terms, need: tuple[int, ...]) -> Recurrence:
    params = op.params
    body, consts, carry = params["body"], params["consts"], params["carry"]

    def run(order: int) -> Found:
        made, given = _loop(body, tuple([orders_of(x, order) for x in xs]), order, consts, carry)
        joint = scan.op(
            **{
                **params,
                "body": made.program,
                "consts": _size(given[:consts]),
                "carry": _size(given[consts : consts + carry]),
            }
        )
        return _values(op, xs, given, made.outputs(joint(*with_terms(xs, given)), order))

    return Recurrence(recomputed(run, xs, need), len(body.output_ids))


def _while(op: Op, xs: Terms, need: tuple[int, ...]) -> Recurrence:
    """The condition reads only values."""
    condition, body, consts = op.params["cond"], op.params["body"], op.params["consts"]

    def run(order: int) -> Found:
        made, given = _loop(body, tuple([orders_of(x, order) for x in xs]), order, consts, len(xs) - consts)
        joint = while_loop.op(
            cond=_on_values(condition, given),
            body=made.program,
            consts=_size(given[:consts]),
            max_steps=op.params["max_steps"],
        )
        return _values(op, xs, given, made.outputs(joint(*with_terms(xs, given)), order))

    return Recurrence(recomputed(run, xs, need), len(body.output_ids))


def _budgeted(op: Op, xs: Terms, need: tuple[int, ...]) -> Recurrence:
    """A loop over coefficients keeps the budget of the original loop."""
    program = op.params["program"]

    def run(order: int) -> Found:
        given = tuple([orders_of(x, order) for x in xs])
        made = for_body(program, given, order)
        found = budgeted(*with_terms(xs, given), program=made.program, memory_budget=op.params["memory_budget"])
        return _values(op, xs, given, made.outputs(found, order))

    return Recurrence(recomputed(run, xs, need), len(program.output_ids))


@kept
def _on_values(condition: Program, given: tuple[Orders, ...]) -> Program:
    """The condition as a program that also takes the coefficients, and ignores them."""
    counts = [1 + len(orders) for orders in given]
    specs = [spec for spec, n in zip(condition.inputs, counts, strict=True) for _ in range(n)]
    values = [sum(counts[:i]) for i in range(len(counts))]
    return optimise(staged(lambda *xs: applied(condition, [xs[i] for i in values]), specs).program)


PROGRAMS[budgeted] = _budgeted
PROGRAMS[cond] = _cond
PROGRAMS[scan] = _scan
PROGRAMS[while_loop] = _while
