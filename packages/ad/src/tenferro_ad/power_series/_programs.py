"""Programs of coefficients: from operands with their coefficients to outputs with theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from tenferro_ad._zeros import zeros_like
from tenferro_ad.power_series._coefficients import Coefficients, Term
from tenferro_ad.power_series._series import coefficients_of, series
from tenferro_runtime.extension import Builder, Program, interpret, optimise
from tenferro_runtime.ir import substitute
from tenferro_runtime.tracing.derived import derived
from tenferro_tensor import next_level
from tenferro_tensor_core import DimLike

Orders = tuple[int, ...]
"""The orders, at least 1, of the nonzero coefficients; ``()`` for a constant."""

Found = Sequence[Sequence[Term]]
"""For each output, its coefficients from order 0."""


class SeriesProgram(NamedTuple):
    """A program on coefficients.

    Attributes:
        program: maps the operands, each followed by its coefficients, to the outputs, each followed by its own.
        orders: orders of each output.
    """

    program: Program
    orders: tuple[Orders, ...]

    def outputs(self, found: Sequence[Any], order: int) -> list[list[Term]]:
        """The results of the program, grouped by output."""
        values = iter(found)
        terms = []
        for orders in self.orders:
            first = next(values)
            there = dict(zip(orders, values))
            terms.append([first, *[there.get(k) for k in range(1, order + 1)]])
        return terms


def for_call(program: Program, given: tuple[Orders, ...], order: int, sizes: Mapping[str, DimLike]) -> SeriesProgram:
    """A called program on coefficients; cached with it. For `sizes`, see `derived`."""
    found: SeriesProgram = derived(
        program,
        ("series", given, order),
        sizes,
        partial(_made, given, order, ((),) * len(program.output_ids)),
        lambda found, equalities: found._replace(program=substitute(found.program, equalities)),
    )
    return found


def for_body(
    program: Program, given: tuple[Orders, ...], order: int, forced: tuple[Orders, ...] | None = None
) -> SeriesProgram:
    """A branch or a body on coefficients; cached with it.

    Args:
        program: the program.
        given: orders of each operand.
        order: the highest order.
        forced: orders of each output that are computed even if the coefficient is always zero.
    """
    ends = ((),) * len(program.output_ids) if forced is None else forced
    return derived(program, ("series", given, order, ends), None, partial(_made, given, order, ends))


def _made(
    given: tuple[Orders, ...], order: int, forced: tuple[Orders, ...], program: Program, builder: Builder
) -> SeriesProgram:
    level = next_level()
    ins = []
    for spec, orders in zip(program.inputs, given, strict=True):
        value = builder.input(spec)
        there = {k: builder.input(spec) for k in orders}
        terms = [value, *[there.get(k) for k in range(1, order + 1)]]
        ins.append(series(Coefficients(terms, order), level, order) if there else value)
    outs, found = [], []
    for out, wanted in zip(interpret(program, ins), forced, strict=True):
        x = coefficients_of(out, level)
        value = builder.lift(out if x is None else x[0])
        orders = tuple([k for k in range(1, order + 1) if k in wanted or (x is not None and x[k] is not None)])
        outs += [value, *[zeros_like(value) if x is None or x[k] is None else x[k] for k in orders]]
        found.append(orders)
    return SeriesProgram(optimise(builder.close(outs, examples=program.examples)), tuple(found))


def orders_of(x: Coefficients, order: int) -> Orders:
    """The orders of the nonzero coefficients up to `order`."""
    return tuple([k for k in range(1, order + 1) if x[k] is not None])


def with_terms(xs: Sequence[Coefficients], given: Sequence[Orders]) -> list[Any]:
    """Each operand followed by its coefficients, with zeros for missing ones."""
    found = []
    for x, orders in zip(xs, given, strict=True):
        found += [x[0], *[zeros_like(x[0]) if x[k] is None else x[k] for k in orders]]
    return found


def outranked(xs: Sequence[Coefficients], given: Sequence[Orders]) -> bool:
    """Whether coefficients belong to a level above all values, so that values must be computed separately."""
    terms = [x[k] for x, orders in zip(xs, given, strict=True) for k in orders]
    return bool(max([t.level for t in terms if t is not None], default=0) > max([x[0].level for x in xs]))


def recomputed(run: Callable[[int], Found], xs: Sequence[Coefficients], need: tuple[int, ...]) -> Iterator[Any]:
    """The recurrence of a function that computes all orders at once; it is called again for higher orders.

    Args:
        run: maps an order to the coefficients of all outputs up to it.
        xs: coefficients of all operands.
        need: positions of the operands that are series.
    """
    found: Found = ()
    done = -1
    for k in count():
        if k > done:
            done = max(k, min([xs[i].reach for i in need]))
            found = run(done)
        yield tuple([terms[k] for terms in found])
