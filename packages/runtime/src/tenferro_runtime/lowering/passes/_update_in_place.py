"""`update_in_place`: a loop computes an array from itself in place where no element is read after it is overwritten.

Lowering gives the new value of a carry a buffer of its own, which is swapped with that of the old one. Once loops are
fused, the new value of an element often depends on no other element, as in a sum of products, and one buffer is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tenferro_runtime.lowering._rewriting import renamed, swapped
from tenferro_runtime.lowering.passes._contents import Block, mentioned, with_blocks
from tenferro_runtime.lowering.passes._footprint import Footprints
from tenferro_runtime.lowering.passes._reuse_memory import may_take_over
from tenferro_tensor.loop_ir import Buffer, For, LoopFunction, Role, Statement, While, blocks, everything


def update_in_place(function: LoopFunction) -> LoopFunction:
    """Replace swapped buffers by one where that changes no result.

    Args:
        function: the function.

    Returns:
        The function with fewer temporaries.
    """
    if not swapped(function.body):
        return function
    counts = _mentions(function.body)
    gone: set[int] = set()

    def block(statements: Sequence[Statement]) -> Block:
        return tuple(map(one, statements))

    def one(s: Statement) -> Statement:
        inner = blocks(s)
        s = with_blocks(s, [block(b) for b in inner]) if inner else s
        if isinstance(s, For | While):
            for home, spare in s.swaps:
                inside = 1 + _mentions(s.body)[spare.number]  # the swap names it too
                alone = spare.role is Role.TEMPORARY and inside == counts[spare.number]
                if alone and _may_stay(s, home, spare):
                    s = _staying(s, home, spare)
                    gone.add(spare.number)
        return s

    body = block(function.body)
    temporaries = tuple([b for b in function.temporaries if b.number not in gone])
    return replace(function, body=body, temporaries=temporaries) if gone else function


def _mentions(statements: Sequence[Statement]) -> Counter[int]:
    return Counter([b.number for s in everything(statements) for b in mentioned(s)])


def _may_stay(loop: For | While, home: Buffer, spare: Buffer) -> bool:
    """Whether an iteration may write the new value where the old one is.

    Nothing outside of the loop names the spare buffer, so that an iteration writes all of it that is ever read.
    """
    pairs = [{a.number, b.number} for a, b in loop.swaps]
    once = sum(not p.isdisjoint({home.number, spare.number}) for p in pairs) == 1
    if not once or {home.number, spare.number} & swapped(loop.body):
        return False
    known: Footprints = {}
    return may_take_over(loop.body, home.number, spare.number, known)


def _staying(loop: For | While, home: Buffer, spare: Buffer) -> For | While:
    swaps = tuple([pair for pair in loop.swaps if pair[1].number != spare.number])
    return replace(loop, body=renamed(loop.body, {spare.number: home}), swaps=swaps)
