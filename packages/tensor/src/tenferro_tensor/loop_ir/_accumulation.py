"""The law of `Order.GROUPED`: what a carry accumulates does not depend on it."""

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
    Let,
    Load,
    Order,
    Position,
    Statement,
    Store,
    Switch,
    Value,
    While,
)
from tenferro_tensor.loop_ir._traversal import everything

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
"""Primitives that accumulate in groups; for floating-point numbers up to rounding."""


def accumulates(carry: Carried, body: Sequence[Statement]) -> Op | None:
    """The op of ``following = op(inside, term)``, where nothing else reads `inside` or what becomes of it.

    An inner loop of the same law may accumulate further: its carry starts from `inside`, and its result goes on.
    """
    value, found = carry.inside, None
    while carry.following != value:
        readers = [s for s in everything(body) for read in reads(s) if read == value]
        if len(readers) != 1:
            return None
        s = readers[0]
        if not any(s is t for t in body):
            return None
        if isinstance(s, Let) and s.op.primitive in ASSOCIATIVE and len(s.args) == 2:
            op, value = s.op, s.result
        elif isinstance(s, For) and s.order is Order.GROUPED:
            inner = next((c for c in s.carries if c.first == value), None)
            accumulated = None if inner is None else accumulates(inner, s.body)
            if inner is None or accumulated is None:
                return None
            op, value = accumulated, inner.result
        else:
            return None
        if found not in (None, op):
            return None
        found = op
    read = [r for s in everything(body) for r in reads(s)]
    return found if value not in read or carry.inside == value else None


def reads(s: Statement) -> Iterator[Reg]:
    """The registers that a statement itself reads, each as often as it does."""
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
    yield from [v for v in values if isinstance(v, Reg)]
