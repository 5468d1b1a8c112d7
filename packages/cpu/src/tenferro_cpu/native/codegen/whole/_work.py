"""Estimates of work, in nanoseconds of scalar code, as sizes; they decide about polls, chunks and threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tenferro_cpu.native.codegen.operations._ops import COMPLEX_RULES, FUSED_RULES
from tenferro_tensor import Primitive
from tenferro_tensor.catalog import analytic, arithmetic
from tenferro_tensor.loop_ir import Call, For, Foreign, Let, Order, Statement, Switch, While
from tenferro_tensor_core import DimLike

ASSUMED_TRIPS: Final = 16
"""Assumed iterations of a `While`."""

MAX_TRIPS: Final = 1 << 20
"""Maximum iterations of a `While` that need not be interruptible."""

TEAM_MIN_WORK: Final = 1 << 19
"""Smallest work for which the team is called: vectors do it in about 50 microseconds."""

_SLOW: Final[dict[Primitive, int]] = {
    **dict.fromkeys([*COMPLEX_RULES, *FUSED_RULES], 10),
    **dict.fromkeys([arithmetic.div, analytic.sqrt, analytic.rsqrt], 3),
}


def work(statements: tuple[Statement, ...]) -> DimLike:
    """Cost of a sequence of statements; counted loops and `While`s include their iterations."""
    total: DimLike = 0
    for s in statements:
        if isinstance(s, Let):
            total = total + _SLOW.get(s.op.primitive, 1)
        elif isinstance(s, For):
            total = total + whole_work(s)
        elif isinstance(s, While):
            total = total + (work(s.test) + work(s.body)) * (
                min(ASSUMED_TRIPS, s.most) if isinstance(s.most, int) else ASSUMED_TRIPS
            )
        elif isinstance(s, Switch):
            costs = [work(case.body) for case in s.cases]
            total = total + max([c for c in costs if isinstance(c, int)], default=0)
            for cost in costs:
                total = total + (0 if isinstance(cost, int) else cost)
        else:
            total = total + 1
    return total


def whole_work(s: For) -> DimLike:
    """Cost of a counted loop."""
    return (work(s.body) + 1) * s.extent


def nested(statement: Statement) -> Iterator[Statement]:
    """The statements directly inside a statement."""
    if isinstance(statement, While):
        yield from statement.test
    if isinstance(statement, For | While):
        yield from statement.body
    elif isinstance(statement, Switch):
        for case in statement.cases:
            yield from case.body


def self_contained(s: For) -> bool:
    """Whether a nest of loops may become a separate function that runs to its end without a poll.

    It may not if it contains a `Call`, swaps memory, or may run forever.
    """
    return s.order is not Order.GIVEN and not s.swaps and all(map(_contained, s.body))


def _contained(s: Statement) -> bool:
    endless = isinstance(s, While) and (s.most is None or (isinstance(s.most, int) and s.most > MAX_TRIPS))
    if isinstance(s, Call | Foreign) or endless or (isinstance(s, For | While) and s.swaps):
        return False
    return all(map(_contained, nested(s)))


def is_small(s: For) -> bool:
    """Whether a nest is known to be too small for chunks, or has one iteration."""
    total = whole_work(s)
    return s.extent == 1 or (isinstance(total, int) and total <= TEAM_MIN_WORK)


def team_works(statements: Iterable[Statement]) -> Iterator[DimLike]:
    """Costs of nests that may run in chunks."""
    for s in statements:
        if isinstance(s, For) and self_contained(s):
            if not is_small(s):
                yield whole_work(s)
        else:
            yield from team_works(nested(s))
