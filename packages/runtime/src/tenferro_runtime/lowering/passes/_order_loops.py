"""`order_loops`: interchanges independent loops so that the innermost one has unit stride.

If some accesses have unit stride along one axis and some along another, as in a sum with a transposed array, the loops
along both become the innermost ones (`pair_loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenferro_runtime.lowering.passes._contents import (
    Block,
    with_blocks,
)
from tenferro_tensor.loop_ir import (
    Affine,
    For,
    Let,
    Load,
    Order,
    Position,
    Reg,
    Statement,
    Store,
    blocks,
    everything,
)


def order_loops(statements: Sequence[Statement]) -> Block:
    """Interchange the loops of each nest for unit stride in the innermost one.

    Args:
        statements: the statements.

    Returns:
        The statements.
    """
    return tuple([_ordered(s) for s in statements])


def pair_loops(statements: Sequence[Statement]) -> Block:
    """Move the loop along the rows of other arrays next to the innermost one, for blocks of both.

    Args:
        statements: the statements.

    Returns:
        The statements.
    """
    return tuple([_paired(s) for s in statements])


def _ordered(s: Statement) -> Statement:
    nest = _nest(s, _is_carrying)
    if nest is None:
        inner = blocks(s)
        return with_blocks(s, [order_loops(b) for b in inner]) if inner else s
    loops, body = nest
    scores = [_score(loop.index, body) for loop in loops]
    best = max(range(len(loops)), key=lambda k: (scores[k], k))
    if scores[best] == scores[-1]:
        return s
    return _rebuilt([*loops[:best], *loops[best + 1 :], loops[best]], body)


def _paired(s: Statement) -> Statement:
    nest = _nest(s)
    if nest is None:
        inner = blocks(s)
        return with_blocks(s, [pair_loops(b) for b in inner]) if inner else s
    loops, body = nest
    others = loops[:-1]
    across = [len([t for t in body if _is_across(t, loop.index, loops[-1].index)]) for loop in others]
    best = max(range(len(others)), key=lambda k: (across[k], k))
    if across[best] == across[-1]:
        return s
    return _rebuilt([*others[:best], *others[best + 1 :], others[best], loops[-1]], body)


def _is_across(s: Statement, index: Reg, innermost: Reg) -> bool:
    """Whether a load has unit stride along a loop, and a large stride along the innermost one."""
    return isinstance(s, Load) and _unit(s.at, index) and not _unit(s.at, innermost)


def _is_carrying(s: Statement) -> bool:
    """Whether a statement is a loop that computes a number, such as a sum."""
    return (
        isinstance(s, For) and bool(s.carries) and not s.swaps and all(_is_plain(t) or _is_carrying(t) for t in s.body)
    )


def _is_plain(s: Statement) -> bool:
    return isinstance(s, Let | Position | Load | Store)


def _nest(s: Statement, more: Callable[[Statement], bool] | None = None) -> tuple[list[For], Block] | None:
    """A perfect nest of at least two independent loops, and its body of plain statements, or of `more`."""
    loops: list[For] = []
    while isinstance(s, For) and s.order is Order.ANY:
        loops.append(s)
        if len(s.body) != 1:
            break
        s = s.body[0]
    if len(loops) < 2 or not all(_is_plain(t) or (more is not None and more(t)) for t in loops[-1].body):
        return None
    return loops, loops[-1].body


def _score(index: Reg, body: Block) -> int:
    """Number of accesses with unit stride; stores count twice."""
    all_of = everything(body)
    return sum([1 + isinstance(s, Store) for s in all_of if isinstance(s, Load | Store) and _unit(s.at, index)])


def _unit(at: Affine, index: Reg) -> bool:
    by = at.coefficient(index)
    return isinstance(by, int) and abs(by) == 1


def _rebuilt(loops: Sequence[For], body: Block) -> Statement:
    for loop in reversed(loops):
        body = (For(loop.index, loop.extent, body, order=Order.ANY),)
    return body[0]
