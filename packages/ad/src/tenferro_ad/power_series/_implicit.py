"""Taylor rules of solutions of equations: one linear equation for each order.

With ``f(c, x) = 0``, evaluate f at x with its coefficient k set to zero: coefficient k of the result is ``-J x_k``,
where J is the derivative of f in x at the solution. The solver of the equation itself runs once, for the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from tenferro_ad._zeros import zeros_like
from tenferro_ad.implicit._root_rules import at_solution
from tenferro_ad.power_series._coefficients import Coefficients, Term, difference
from tenferro_ad.power_series._derived import Recurrence
from tenferro_ad.power_series._kinds import PROGRAMS
from tenferro_ad.power_series._series import coefficients_of, series
from tenferro_runtime.equations import linear_solve, root
from tenferro_runtime.extension import Program
from tenferro_runtime.ir import applied
from tenferro_tensor import Op, next_level


def _linear_solve(op: Op, xs: list[Coefficients], need: tuple[int, ...]) -> Recurrence:
    matvec: Any = op.params["matvec"]
    start = sum(op.params["consts"])
    values = [x[0] for x in xs]
    outs = op(*values)

    def terms() -> Iterator[Any]:
        yield outs
        found = [[v] for v in outs[: len(matvec.output_ids)]]
        for k in count(1):
            rest = _coefficient(matvec, xs[: op.params["consts"][0]], found, k)
            rhs = [difference(b[k], r) for b, r in zip(xs[start:], rest, strict=True)]
            yield _solved(op, values[:start], rhs, found, len(outs))

    return Recurrence(terms(), len(outs))


def _root(op: Op, xs: list[Coefficients], need: tuple[int, ...]) -> Recurrence:
    f: Any = op.params["f"]
    values = [x[0] for x in xs]
    outs = op(*values)

    def terms() -> Iterator[Any]:
        yield outs
        found = [[v] for v in outs[: len(f.output_ids)]]
        step, fixed = at_solution(op, values, [x[0] for x in found])
        for k in count(1):
            rest = _coefficient(f, xs[: op.params["consts"][0]], found, k)
            yield _solved(step, fixed, [difference(None, r) for r in rest], found, len(outs))

    return Recurrence(terms(), len(outs))


def _coefficient(program: Program, known: Sequence[Coefficients], found: list[list[Term]], k: int) -> list[Term]:
    """Coefficient k of the outputs of a program, with coefficient k of the unknowns set to zero."""
    level = next_level()
    given = [[x[j] for j in range(k + 1)] for x in known] + found
    ins = [Coefficients(terms, k).forced(k) for terms in given]
    outs = applied(program, [series(x, level, k) if len(x.terms) > 1 else x.terms[0] for x in ins])
    return [None if x is None else x[k] for x in [coefficients_of(y, level) for y in outs]]


def _solved(op: Op, fixed: Sequence[Any], rhs: list[Term], found: list[list[Term]], count: int) -> tuple[Term, ...]:
    """The next coefficients of the unknowns, which are appended to `found`, and of the other results."""
    terms: list[Term] = [None] * len(found)
    if any(r is not None for r in rhs):
        given = [zeros_like(x[0]) if r is None else r for r, x in zip(rhs, found, strict=True)]
        terms = list(op(*fixed, *given)[: len(found)])
    for x, term in zip(found, terms, strict=True):
        x.append(term)
    return (*terms, *[None] * (count - len(found)))


PROGRAMS[linear_solve] = _linear_solve
PROGRAMS[root] = _root
