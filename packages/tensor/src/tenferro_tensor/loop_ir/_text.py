"""Statements as text: one line each, with nested statements indented below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tenferro_tensor.loop_ir._affine import Affine, Reg
from tenferro_tensor.loop_ir._metadata import extent, extents, number, op_text
from tenferro_tensor.loop_ir._nodes import (
    Buffer,
    Call,
    Carried,
    For,
    Foreign,
    Let,
    Literal,
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
from tenferro_tensor_core import DimLike

INDENT: Final = "  "

Note = Callable[[Statement], str]
"""Returns the note printed beside a statement; none if empty."""


def declared(buffer: Buffer) -> str:
    """The declaration of a buffer, ``output b2: float64[n, 3]``.

    Args:
        buffer: the buffer.

    Returns:
        The text.
    """
    return f"{buffer.role.value} {buffer}: {buffer.dtype.name}{extents(buffer.shape)}"


def head(statement: Statement) -> str:
    """The first line of a statement, without the user's source line.

    Args:
        statement: the statement.

    Returns:
        The text.
    """
    match statement:
        case Let(result, op, args):
            return f"{_new(result)} = {op_text(op)}({', '.join(map(_value, args))})"
        case Position(result, index):
            return f"{_new(result)} = {_index(index)}"
        case Load(result, buffer, at):
            return f"{_new(result)} = {buffer}[{_index(at)}]"
        case Store(buffer, at, value):
            return f"{buffer}[{_index(at)}] = {_value(value)}"
        case For(index, count, order=order):
            return f"for {index} < {extent(count)}{'' if order is Order.GIVEN else f' {order.value}'}:"
        case While(index=index, most=most):
            return f"while {index}{'' if most is None else f' < {extent(most)}'}:"
        case Switch(index):
            return f"switch {_value(index)}:"
        case Call(op, operands, results, ins):
            specs = ", ".join(f"{s.dtype.name}{extents(s.shape)}" for s in ins)
            how = f"{'recourse to ' * statement.recourse}call {op_text(op)}"
            return f"{', '.join(map(_view, results))} = {how}({', '.join(map(_view, operands))}) of {specs}"
        case Foreign(symbol, arguments, written, info):
            shown = [f"{'&' * (k in written)}{_argument(a)}" for k, a in enumerate(arguments)]
            return f"{'' if info is None else f'{_new(info)} = '}{symbol}({', '.join(shown)})"


def _argument(argument: str | Value | View) -> str:
    if isinstance(argument, str):
        return repr(argument)
    return _view(argument) if isinstance(argument, View) else _value(argument)


def lines(statements: Sequence[Statement], note: Note, indent: str = INDENT) -> Iterator[str]:
    """The lines of statements, each with its note."""
    for s in statements:
        said = note(s)
        yield f"{indent}{head(s)}{f'  # {said}' if said else ''}"
        inner = indent + INDENT
        if isinstance(s, For | While):
            yield from [f"{inner}carry {_new(c.inside)} = {_value(c.first)}" for c in s.carries]
            if isinstance(s, While):
                yield from lines(s.test, note, inner)
                yield f"{inner}if {_value(s.condition)}:"
                inner += INDENT
            yield from lines(s.body, note, inner)
            yield from [f"{inner}next {c.inside} = {_value(c.following)}" for c in s.carries]
            yield from [f"{inner}swap {a}, {b}" for a, b in s.swaps]
            yield from [_last(indent, c) for c in s.carries]
        elif isinstance(s, Switch):
            for number, case in enumerate(s.cases):
                yield f"{inner}case {number}:"
                yield from lines(case.body, note, inner + INDENT)
                for result, value in zip(s.results, case.values, strict=False):
                    yield f"{inner}{INDENT}{_new(result)} = {_value(value)}"


def _last(indent: str, c: Carried) -> str:
    return f"{indent}{_new(c.result)} = last {c.inside}"


def _new(reg: Reg) -> str:
    return f"{reg}: {reg.dtype.name}"


def _value(value: Value) -> str:
    return f"{value.dtype.name}({number(value.value)})" if isinstance(value, Literal) else str(value)


def _index(index: Affine) -> str:
    parts = [str(r) if by.__class__ is int and by == 1 else f"{r}*{_factor(by)}" for r, by in index.terms]
    if not parts or not (index.constant.__class__ is int and index.constant == 0):
        parts.append(extent(index.constant))
    return " + ".join(parts)


def _factor(by: DimLike) -> str:
    text = extent(by)
    return text if text.lstrip("-").isalnum() else f"({text})"


def _view(view: View) -> str:
    return f"{view.buffer}[{_index(view.at)} : {extents(view.shape)} by {extents(view.strides)}]"
