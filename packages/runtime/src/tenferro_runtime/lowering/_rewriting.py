"""Replaces buffers in statements, so that results are computed in the caller's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenferro_tensor.loop_ir import (
    Buffer,
    Call,
    Case,
    For,
    Foreign,
    Load,
    Statement,
    Store,
    Switch,
    View,
    While,
    everything,
)


def swapped(statements: Sequence[Statement]) -> set[int]:
    """Numbers of the buffers that a loop swaps."""
    loops = [s for s in everything(statements) if isinstance(s, For | While)]
    return {buffer.number for s in loops for pair in s.swaps for buffer in pair}


def renamed(statements: Sequence[Statement], to: Mapping[int, Buffer]) -> tuple[Statement, ...]:
    """The statements with buffers replaced, by number; none of them may be swapped."""
    return tuple([_renamed(s, to) for s in statements])


def _renamed(s: Statement, to: Mapping[int, Buffer]) -> Statement:
    if isinstance(s, Load | Store):
        other = to.get(s.buffer.number)
        return s if other is None else replace(s, buffer=other)
    if isinstance(s, For):
        return replace(s, body=renamed(s.body, to))
    if isinstance(s, While):
        return replace(s, test=renamed(s.test, to), body=renamed(s.body, to))
    if isinstance(s, Switch):
        return replace(s, cases=tuple([Case(renamed(case.body, to), case.values) for case in s.cases]))
    if isinstance(s, Call):
        return replace(s, operands=_views(s.operands, to), results=_views(s.results, to))
    if isinstance(s, Foreign):
        arguments = [_views((a,), to)[0] if isinstance(a, View) else a for a in s.arguments]
        return replace(s, arguments=tuple(arguments))
    return s


def _views(views: Sequence[View], to: Mapping[int, Buffer]) -> tuple[View, ...]:
    return tuple([replace(v, buffer=to.get(v.buffer.number, v.buffer)) for v in views])
