"""Rules for blocks at computed starts: blocks that are written and then read or overwritten at the same start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenferro_runtime.ir._program import Equation, Operand
from tenferro_runtime.passes._rewriting import Rewriting, Rules
from tenferro_tensor import catalog as c


def same_starts(work: Rewriting, a: Sequence[Operand], b: Sequence[Operand]) -> bool:
    """Whether two blocks of equal extents have equal starts."""
    for u, v in zip(a, b, strict=True):
        if u != v:
            first = work.number(u)
            if first is None or first != work.number(v):
                return False
    return True


def _read(work: Rewriting, eq: Equation) -> int | None:
    """A read of a block that has just been written is that block."""
    x, *starts = eq.operands
    made = work.maker(x, c.dynamic_update_slice)
    if made is None:
        return None
    update = made.operands[1]
    fits = update.__class__ is int and work.specs[update] is work.specs[eq.results[0]]
    return update if fits and same_starts(work, made.operands[2:], starts) else None  # type: ignore[return-value]


def _written(work: Rewriting, eq: Equation) -> int | None:
    """A write of a block that is already there, or over a block just written."""
    x, update, *starts = eq.operands
    read = work.maker(update, c.dynamic_slice)
    if read is not None and read.operands[0] == x and same_starts(work, read.operands[1:], starts):
        return x  # type: ignore[return-value]
    before = work.maker(x, c.dynamic_update_slice)
    if before is None or work.specs[before.operands[1]] is not work.specs[update]:  # type: ignore[index]
        return None
    if not same_starts(work, before.operands[2:], starts):
        return None
    return work.emit(eq.op, (before.operands[0], update, *starts), work.specs[eq.results[0]], eq.source)


BLOCKS: Final[Rules] = {c.dynamic_slice: (_read,), c.dynamic_update_slice: (_written,)}
