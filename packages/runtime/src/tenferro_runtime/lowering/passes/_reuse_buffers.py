"""`reuse_buffers`: a temporary array that is read for the last time where an output is written lives in this output.

So a normalisation writes rows of exponentials where their quotients go, and does not touch memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tenferro_runtime.lowering.passes._contents import Block, mentioned, with_blocks
from tenferro_tensor.loop_ir import Buffer, For, Load, LoopFunction, Order, Role, Statement, Store, blocks
from tenferro_tensor_core import DimLike

MOST_TRIES: Final = 64
"""Buffers that find a place of their own in one function."""


@dataclass(slots=True)
class _Access:
    """A load or a store.

    Attributes:
        statement: which one.
        path: where: positions in the blocks around it, the outermost one first.
        around: the loops around it.
    """

    statement: Load | Store
    path: tuple[int, ...]
    around: tuple[For, ...]


@dataclass(slots=True)
class _Uses:
    """What is known about the buffers of a function.

    Attributes:
        accesses: loads and stores by buffer, in order.
        barred: numbers of buffers that are used otherwise, or in loops in order and branches.
    """

    accesses: dict[int, list[_Access]] = field(default_factory=dict)
    barred: set[int] = field(default_factory=set)


def reuse_buffers(function: LoopFunction) -> LoopFunction:
    """A function that gives the same bits with fewer temporary buffers."""
    for _ in range(MOST_TRIES):
        uses = _Uses()
        _collect(uses, function.body, (), ())
        pair = next(_pairs(function, uses), None)
        if pair is None:
            break
        gone, kept = pair
        body = _renamed(function.body, gone, kept)
        left = tuple([b for b in function.temporaries if b.number != gone.number])
        function = replace(function, body=body, temporaries=left)
    return function


def _collect(uses: _Uses, statements: Sequence[Statement], path: tuple[int, ...], around: tuple[For, ...]) -> None:
    for k, s in enumerate(statements):
        if isinstance(s, Load | Store):
            uses.accesses.setdefault(s.buffer.number, []).append(_Access(s, (*path, k), around))
        elif isinstance(s, For) and s.order is not Order.GIVEN and not s.swaps:
            _collect(uses, s.body, (*path, k), (*around, s))
        else:
            uses.barred |= set(_all_mentioned(s))


def _all_mentioned(s: Statement) -> Iterator[int]:
    yield from [b.number for b in mentioned(s)]
    for block in blocks(s):
        for t in block:
            yield from _all_mentioned(t)


def _pairs(function: LoopFunction, uses: _Uses) -> Iterator[tuple[Buffer, Buffer]]:
    """Temporary buffers with the outputs that they may live in."""
    temporaries = {b.number: b for b in function.temporaries if b.number not in uses.barred}
    for output in function.outputs:
        stores = uses.accesses.get(output.number, [])
        if output.number in uses.barred or len(stores) != 1 or output.role is not Role.OUTPUT:
            continue
        (last,) = stores
        if not last.around or any(s.order is not Order.ANY for s in last.around):
            continue
        for read in [t for t in last.around[-1].body if isinstance(t, Load)]:
            b = temporaries.get(read.buffer.number)
            if b is not None and b.dtype == output.dtype and _count(b.shape) == _count(output.shape):
                if read.at == last.statement.at and _ends_in(uses.accesses[b.number], last):
                    yield b, output


def _ends_in(accesses: Sequence[_Access], last: _Access) -> bool:
    """Whether one of the accesses, right before the last store in its loop, is the last one of all to its place.

    Iterations of the outermost loop are independent. So what one of them writes and reads no other one does, and a
    place that the innermost loop reads once is read nowhere else in it: each iteration of it writes a place of its own.
    """
    top, loop = last.path[0], last.path[:-1]
    within = [a for a in accesses if a.path[:-1] == loop]
    others = [a for a in accesses if a.path[: len(loop)] != loop]
    if len(within) != 1 or len(within) + len(others) != len(accesses):
        return False
    if not isinstance(within[0].statement, Load) or within[0].path > last.path:
        return False
    if all(a.path[0] < top for a in others):
        return bool(others)
    return (
        len(loop) == 2
        and all(a.path[0] == top and a.path < loop for a in others)
        and any(isinstance(a.statement, Store) for a in others)
    )


def _count(shape: Sequence[DimLike]) -> DimLike:
    found: DimLike = 1
    for n in shape:
        found = found * n
    return found


def _renamed(statements: Sequence[Statement], gone: Buffer, kept: Buffer) -> Block:
    def one(s: Statement) -> Statement:
        if isinstance(s, Load | Store):
            return replace(s, buffer=kept) if s.buffer.number == gone.number else s
        inner = blocks(s)
        return with_blocks(s, [_renamed(b, gone, kept) for b in inner]) if inner else s

    return tuple(map(one, statements))
