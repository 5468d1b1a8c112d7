"""The law of `Order.GROUPED`: the terms that a carry accumulates do not depend on the carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tenferro_tensor._primitive import Op
from tenferro_tensor.catalog import arithmetic, bits
from tenferro_tensor.loop_ir._affine import Reg
from tenferro_tensor.loop_ir._nodes import (
    Call,
    Carried,
    For,
    Foreign,
    Let,
    Load,
    Order,
    Position,
    Statement,
    Store,
    Switch,
    Value,
    View,
    While,
)
from tenferro_tensor.loop_ir._traversal import everything

ADD: Final = arithmetic.add.op()
"""The op that a sum of indices stands for."""

ASSOCIATIVE: Final = frozenset(
    {
        arithmetic.add,
        arithmetic.mul,
        arithmetic.maximum,
        arithmetic.minimum,
        bits.bitwise_and,
        bits.bitwise_or,
        bits.bitwise_xor,
    }
)
"""Primitives that may accumulate in groups; floating-point results agree up to rounding."""


def accumulates(carry: Carried, body: Sequence[Statement]) -> bool:
    """Whether a carry only accumulates: ``following = op(inside, term)``, with no other use of `inside` or of
    intermediate results.

    There may be several terms, or none. An inner loop of the same form may accumulate further: its carry starts from
    `inside`, and its result continues.

    Args:
        carry: the carry.
        body: body of its loop.

    Returns:
        True if it accumulates by one associative op.
    """
    ops = _ops(carry, body)
    return ops is not None and len(ops) <= 1


def accumulation(carry: Carried, body: Sequence[Statement]) -> Op | None:
    """The op by which a carry of a grouped loop accumulates.

    Args:
        carry: the carry.
        body: body of its loop.

    Returns:
        The op; None if the carry is constant.
    """
    ops = _ops(carry, body)
    assert ops is not None, "the carries of a grouped loop accumulate"
    return next(iter(ops), None)


def _ops(carry: Carried, body: Sequence[Statement]) -> set[Op] | None:
    """The ops by which a carry accumulates; None if it does anything else."""
    value, found = carry.inside, set[Op]()
    while True:
        readers = [s for s in everything(body) for read in reads(s) if read == value]
        if carry.following == value:
            return None if readers else found
        if len(readers) != 1 or not any(readers[0] is s for s in body):
            return None
        match readers[0]:
            case Let(result=result, op=op, args=(_, _)) if op.primitive in ASSOCIATIVE:
                found.add(op)
                value = result
            case Position(result=result, index=index) if index.coefficient(value) == 1:
                found.add(ADD)
                value = result
            case For(order=Order.GROUPED, carries=carries, body=inner):
                further = next((c for c in carries if c.first == value), None)
                ops = None if further is None else _ops(further, inner)
                if further is None or ops is None:
                    return None
                found |= ops
                value = further.result
            case _:
                return None


def reads(s: Statement) -> Iterator[Reg]:
    """The registers that a statement itself reads, with repetitions.

    Args:
        s: the statement.

    Returns:
        An iterator of registers.
    """
    values: Sequence[Value] = ()
    match s:
        case Let(args=args):
            values = args
        case Position(index=index):
            values = [reg for reg, _ in index.terms]
        case Load(at=at):
            values = [reg for reg, _ in at.terms]
        case Store(at=at, value=value):
            values = [*[reg for reg, _ in at.terms], value]
        case For(carries=carries):
            values = [v for c in carries for v in (c.first, c.following)]
        case While(condition=condition, carries=carries):
            values = [condition, *[v for c in carries for v in (c.first, c.following)]]
        case Switch(index=index, cases=cases):
            values = [index, *[v for case in cases for v in case.values]]
        case Call(operands=operands, results=results):
            values = [reg for view in (*operands, *results) for reg, _ in view.at.terms]
        case Foreign(arguments=arguments):
            values = [v for a in arguments if not isinstance(a, str) for v in _of_argument(a)]
    yield from [v for v in values if isinstance(v, Reg)]


def _of_argument(a: Value | View) -> Sequence[Value]:
    return [reg for reg, _ in a.at.terms] if isinstance(a, View) else [a]
