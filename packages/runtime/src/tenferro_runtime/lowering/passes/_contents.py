"""Access to and replacement of the contents of statements: the only module of the passes that knows all nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from tenferro_tensor.loop_ir import (
    Affine,
    Buffer,
    Call,
    Case,
    For,
    Foreign,
    Let,
    Load,
    Position,
    Reg,
    Statement,
    Store,
    Switch,
    Value,
    View,
    While,
    blocks,
)

Block: TypeAlias = tuple[Statement, ...]


def sets(s: Statement) -> Iterator[Reg]:
    """The registers that a statement sets for its block, without those of its bodies."""
    match s:
        case Let(result=result) | Position(result=result) | Load(result=result):
            yield result
        case For(carries=carries) | While(carries=carries):
            yield from [c.result for c in carries]
        case Switch(results=results):
            yield from results
        case Foreign(info=info) if info is not None:
            yield info


def all_registers(s: Statement) -> Iterator[Reg]:
    """The registers that a statement sets, including those of its bodies."""
    yield from sets(s)
    if isinstance(s, For | While):
        yield s.index
        yield from [c.inside for c in s.carries]


def reads(s: Statement) -> Iterator[Reg]:
    """The registers that a statement reads, without its bodies; for loops, those of initial values."""
    match s:
        case Let(args=args):
            yield from registers(args)
        case Position(index=index):
            yield from [reg for reg, _ in index.terms]
        case Load(at=at):
            yield from [reg for reg, _ in at.terms]
        case Store(at=at, value=value):
            yield from [reg for reg, _ in at.terms]
            yield from registers((value,))
        case For(carries=carries) | While(carries=carries):
            yield from registers([c.first for c in carries])
        case Switch(index=index):
            yield from registers((index,))
        case Call(operands=operands, results=results):
            yield from [reg for view in (*operands, *results) for reg, _ in view.at.terms]
        case Foreign(arguments=arguments):
            for a in arguments:
                if isinstance(a, View):
                    yield from [reg for reg, _ in a.at.terms]
                elif isinstance(a, Reg):
                    yield a


def hands_on(s: Statement) -> Iterator[Reg]:
    """The registers that a statement reads at the end of its bodies."""
    match s:
        case For(carries=carries):
            yield from registers([c.following for c in carries])
        case While(carries=carries, condition=condition):
            yield from registers([condition, *[c.following for c in carries]])
        case Switch(cases=cases):
            yield from registers([v for case in cases for v in case.values])


def registers(values: Sequence[Value]) -> list[Reg]:
    """The values that are registers."""
    return [v for v in values if isinstance(v, Reg)]


def with_blocks(s: Statement, new: Sequence[Block]) -> Statement:
    """A statement with other bodies."""
    match s:
        case For(body=body):
            return s if new[0] is body else replace(s, body=new[0])
        case While():
            return replace(s, test=new[0], body=new[1])
        case Switch(cases=cases):
            return replace(s, cases=tuple([Case(body, case.values) for case, body in zip(cases, new, strict=True)]))
    return s


def with_values(s: Statement, value: Callable[[Value], Value], place: Callable[[Affine], Affine]) -> Statement:
    """A statement with other operands, except those of its bodies and at their ends."""
    match s:
        case Let(result, op, args):
            new = tuple([value(a) for a in args])
            return s if new == args else Let(result, op, new)
        case Position(result, index):
            return Position(result, place(index))
        case Load(result, buffer, at):
            return Load(result, buffer, place(at))
        case Store(buffer, at, stored):
            return Store(buffer, place(at), value(stored))
        case For(carries=carries) | While(carries=carries):
            return replace(s, carries=tuple([replace(c, first=value(c.first)) for c in carries])) if carries else s
        case Switch(index=index):
            return replace(s, index=value(index))
        case Call(operands=operands, results=results):
            return replace(s, operands=_moved(operands, place), results=_moved(results, place))
        case Foreign(arguments=arguments):
            return replace(s, arguments=tuple([_argument(a, value, place) for a in arguments]))
    return s


def with_ends(s: Statement, value: Callable[[Value], Value]) -> Statement:
    """A statement that reads other values at the end of its bodies."""
    match s:
        case For(carries=carries):
            return replace(s, carries=tuple([replace(c, following=value(c.following)) for c in carries]))
        case While(carries=carries, condition=condition):
            carried = tuple([replace(c, following=value(c.following)) for c in carries])
            return replace(s, carries=carried, condition=value(condition))
        case Switch(cases=cases):
            return replace(s, cases=tuple([Case(case.body, tuple(map(value, case.values))) for case in cases]))
    return s


def _moved(views: Sequence[View], place: Callable[[Affine], Affine]) -> tuple[View, ...]:
    return tuple([replace(view, at=place(view.at)) for view in views])


def _argument(
    a: str | Value | View, value: Callable[[Value], Value], place: Callable[[Affine], Affine]
) -> str | Value | View:
    if isinstance(a, View):
        return replace(a, at=place(a.at))
    return a if isinstance(a, str) else value(a)


def substituted(statements: Sequence[Statement], values: Mapping[int, Value]) -> Block:
    """Statements with other values for registers, by number."""

    def value(v: Value) -> Value:
        return values.get(v.number, v) if isinstance(v, Reg) else v

    def place(at: Affine) -> Affine:
        return substituted_place(at, values)

    def all_of(block: Sequence[Statement]) -> Block:
        return tuple([one(s) for s in block])

    def one(s: Statement) -> Statement:
        s = with_values(s, value, place)
        inner = blocks(s)
        return with_ends(with_blocks(s, [all_of(b) for b in inner]), value) if inner else s

    return all_of(statements)


def substituted_place(at: Affine, values: Mapping[int, Value]) -> Affine:
    """An address with other values for registers."""
    for reg, by in at.terms:
        new = values.get(reg.number)
        if new is not None:
            index = Affine.of(new) if isinstance(new, Reg) else Affine(int(new.value))  # type: ignore[arg-type]
            at = at - Affine.of(reg) * by + index * by
    return at


def changed(s: Statement) -> list[Buffer]:
    """Buffers that a statement writes to or swaps, without its bodies."""
    match s:
        case Store(buffer=buffer):
            return [buffer]
        case For(swaps=swaps) | While(swaps=swaps):
            return [buffer for pair in swaps for buffer in pair]
        case Call(results=results):
            return [view.buffer for view in results]
        case Foreign(arguments=arguments, written=written):
            return [a.buffer for k in written if isinstance(a := arguments[k], View)]
    return []


def mentioned(s: Statement) -> list[Buffer]:
    """Buffers that a statement names, without its bodies."""
    match s:
        case Load(buffer=buffer):
            return [buffer]
        case Call(operands=operands):
            return [*[view.buffer for view in operands], *changed(s)]
        case Foreign(arguments=arguments):
            return [a.buffer for a in arguments if isinstance(a, View)]
    return changed(s)
