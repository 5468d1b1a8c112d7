"""Traversal of statements: nested ones in order, the registers they assign, and their accesses to buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenferro_tensor.loop_ir._affine import Affine, Reg
from tenferro_tensor.loop_ir._nodes import (
    Buffer,
    Call,
    For,
    Foreign,
    Let,
    Load,
    Position,
    Statement,
    Store,
    Switch,
    View,
    While,
)
from tenferro_tensor_core import DimLike


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of a statement to a buffer: positions ``at`` plus the box of the axes.

    Attributes:
        statement: the statement.
        buffer: the buffer.
        at: the first position.
        axes: extents and strides of a view; none for a load or a store.
        writes: whether it writes.
    """

    statement: Statement
    buffer: Buffer
    at: Affine
    axes: tuple[tuple[DimLike, DimLike], ...]
    writes: bool


def blocks(s: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The blocks of statements directly inside a statement, in order of execution.

    Args:
        s: the statement.

    Returns:
        A tuple of blocks.
    """
    match s:
        case For(body=body):
            return (body,)
        case While(test=test, body=body):
            return test, body
        case Switch(cases=cases):
            return tuple([case.body for case in cases])
    return ()


def everything(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Iterate over all statements, nested ones included; a compound statement comes before its blocks.

    Args:
        statements: the statements.

    Returns:
        An iterator.
    """
    for s in statements:
        yield s
        for block in blocks(s):
            yield from everything(block)


def registers(s: Statement) -> tuple[Reg, ...]:
    """The registers that a statement itself assigns; nested statements are not included.

    Args:
        s: the statement.

    Returns:
        The registers.
    """
    match s:
        case Let(result=result) | Position(result=result) | Load(result=result):
            return (result,)
        case For(index=index, carries=carries) | While(index=index, carries=carries):
            return (index, *[reg for c in carries for reg in (c.inside, c.result)])
        case Switch(results=results):
            return results
        case Foreign(info=info) if info is not None:
            return (info,)
    return ()


def touches(statements: Sequence[Statement]) -> Iterator[Touch]:
    """The buffer accesses of statements in order, including nested ones.

    Args:
        statements: the statements.

    Returns:
        An iterator.
    """
    for s in everything(statements):
        match s:
            case Load(buffer=buffer, at=at):
                yield Touch(s, buffer, at, (), False)
            case Store(buffer=buffer, at=at):
                yield Touch(s, buffer, at, (), True)
            case Call(operands=operands, results=results):
                yield from [touch(s, view, False) for view in operands]
                yield from [touch(s, view, True) for view in results]
            case Foreign(arguments=arguments, written=written):
                yield from [touch(s, a, k in written) for k, a in enumerate(arguments) if isinstance(a, View)]


def touch(s: Statement, view: View, writes: bool) -> Touch:
    """The access of a call to a view."""
    return Touch(s, view.buffer, view.at, tuple(zip(view.shape, view.strides, strict=False)), writes)


def swapped(statements: Sequence[Statement]) -> Iterator[tuple[For | While, tuple[Buffer, Buffer]]]:
    """The loops that swap buffers, with each pair.

    Args:
        statements: the statements.

    Returns:
        An iterator.
    """
    for s in everything(statements):
        if isinstance(s, For | While):
            yield from [(s, pair) for pair in s.swaps]


def recourses(statements: Sequence[Statement]) -> Iterator[Call]:
    """All fallback calls in statements, in order.

    Args:
        statements: the statements.

    Returns:
        An iterator.
    """
    yield from [s for s in everything(statements) if isinstance(s, Call) and s.recourse]
