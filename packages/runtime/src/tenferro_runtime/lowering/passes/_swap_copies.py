"""`swap_copies`: double buffering of an array that a loop computes from itself.

In place, ``u.at[1:-1].set(f(u))`` computes the window separately and copies it to `u`. With a second buffer, the window
needs no copy: only the elements outside it are copied, before the loop if no iteration changes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from tenferro_runtime.lowering._rewriting import renamed
from tenferro_runtime.lowering.passes._contents import Block, all_registers, changed, mentioned, with_blocks
from tenferro_runtime.lowering.passes._fuse_nests import fusible
from tenferro_runtime.lowering.passes._windows import copied_borders, copy_nest, stores_to, window_of
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    For,
    Load,
    LoopFunction,
    Order,
    Reg,
    Role,
    Statement,
    Store,
    While,
    blocks,
    everything,
)
from tenferro_tensor_core import DimLike

SWAP_MIN_ITERATIONS: Final = 4
"""Smallest number of iterations for which a second buffer pays off."""


def swap_copies(function: LoopFunction) -> LoopFunction:
    """Replace copies inside loops by swapped buffers.

    Args:
        function: the function.

    Returns:
        The function.
    """
    work = _Swapping(function)
    body = work.block(function.body)
    if not work.made:
        return function
    tail = [work.copy(work.homes[b.number], b) for b in function.outputs if b.number in work.homes]
    temporaries = (*function.temporaries, *work.made)
    return replace(function, body=(*_with_homes(body, work.homes), *tail), temporaries=temporaries)


class _Swapping:
    """The pass over one function.

    Attributes:
        made: new buffers.
        homes: temporaries in place of outputs, which cannot be swapped, by number of the output.
    """

    def __init__(self, function: LoopFunction) -> None:
        all_of = list(everything(function.body))
        self.made: list[Buffer] = []
        self.homes: dict[int, Buffer] = {}
        named = [b.number for b in (*function.inputs, *function.outputs, *function.temporaries)]
        self._buffers = count(max([*named, *[b.number for b, _ in function.constants], -1]) + 1)
        self._registers = count(_registers(function.body))
        self._mentions = Counter([b.number for s in all_of for b in mentioned(s)])

    def index(self) -> Reg:
        return Reg(next(self._registers), INDEX)

    def buffer(self, like: Buffer) -> Buffer:
        self.made.append(Buffer(next(self._buffers), like.dtype, like.shape, Role.TEMPORARY))
        return self.made[-1]

    def block(self, statements: Sequence[Statement]) -> Block:
        """Rewrite the statements of a block, with the preparation of a loop before it."""
        found: list[Statement] = []
        for s in statements:
            inner = blocks(s)
            s = with_blocks(s, [self.block(b) for b in inner]) if inner else s
            if isinstance(s, While) or (isinstance(s, For) and s.order is Order.GIVEN and _many(s)):
                before, s = self.loop(s)
                found.extend(before)
            found.append(s)
        return tuple(found)

    def loop(self, loop: For | While) -> tuple[list[Statement], For | While]:
        """A loop with fewer copies, and the statements to run before it."""
        before: list[Statement] = []
        for s in loop.body:
            copy = copy_nest(s)
            new = None if copy is None else self.without(loop, s, copy)
            if new is not None:
                before += new[0]
                loop = new[1]
        return before, loop

    def without(
        self, loop: For | While, copying: Statement, copy: tuple[tuple[For, ...], Load, Store]
    ) -> tuple[list[Statement], For | While] | None:
        """The loop without one copy of a window to the array that it was computed from."""
        loops, load, store = copy
        home, window = store.buffer, window_of(store.buffer, loops, store.at)
        makes = self._maker(loop, load, home)
        last = next((k for k, s in enumerate(loop.body) if s is copying), None)
        if window is None or makes is None or last is None or makes >= last:
            return None
        found = stores_to(loop.body[makes], load.buffer)
        if found is None or fusible(loop.body[makes], copying):
            return None
        to = _translated(found, copy)
        if to is None or not self._may_move(loop, home, last):
            return None
        spare = self.buffer(home)
        borders = copied_borders(home, spare, window, self.index)
        computed = _redirected(loop.body[makes], found[1], Store(spare, to, found[1].value))
        after = renamed(loop.body[last + 1 :], {home.number: spare})
        alone = not any(home.number == b.number for s in everything(loop.body[last + 1 :]) for b in changed(s))
        body = (*loop.body[:makes], *(() if alone else borders), computed, *loop.body[makes + 1 : last], *after)
        if home.role is Role.OUTPUT and home.number not in self.homes:
            self.homes[home.number] = self.buffer(home)
        return (borders if alone else []), replace(loop, body=body, swaps=(*loop.swaps, (home, spare)))

    def _maker(self, loop: For | While, load: Load, home: Buffer) -> int | None:
        """The statement of the body that computes the window, which nothing else reads or writes."""
        window = load.buffer
        if window.role is not Role.TEMPORARY or home.role not in (Role.TEMPORARY, Role.OUTPUT):
            return None
        if self._mentions[window.number] != 2:
            return None
        makers = [k for k, s in enumerate(loop.body) if stores_to(s, window) is not None]
        return makers[0] if len(makers) == 1 else None

    def _may_move(self, loop: For | While, home: Buffer, last: int) -> bool:
        """Whether only the copy changes the array before it, and the array is not swapped with another one."""
        swapped = [b for s in (loop, *everything(loop.body)) if isinstance(s, For | While) for p in s.swaps for b in p]
        before = [b for s in everything(loop.body[:last]) for b in changed(s)]
        return all(b.number != home.number for b in (*swapped, *before))

    def copy(self, source: Buffer, target: Buffer) -> Statement:
        """Copy all elements of a buffer to another one."""
        i, number = self.index(), Reg(self.index().number, source.dtype)
        n: DimLike = 1
        for extent in source.shape:
            n = n * extent
        body = (Load(number, source, Affine.of(i)), Store(target, Affine.of(i), number))
        return For(i, n, body, order=Order.ANY)


def _with_homes(body: Block, homes: dict[int, Buffer]) -> Block:
    """The statements with temporaries in place of outputs, in swaps too."""

    def one(s: Statement) -> Statement:
        inner = blocks(s)
        s = with_blocks(s, [tuple(map(one, b)) for b in inner]) if inner else s
        if isinstance(s, For | While) and s.swaps:
            s = replace(s, swaps=tuple([(homes.get(a.number, a), b) for a, b in s.swaps]))
        return s

    return tuple(map(one, renamed(body, homes)))


def _many(s: For) -> bool:
    return not isinstance(s.extent, int) or s.extent >= SWAP_MIN_ITERATIONS


def _registers(body: Block) -> int:
    """The first unused number of a register."""
    return 1 + max([reg.number for s in everything(body) for reg in all_registers(s)], default=-1)


def _translated(found: tuple[tuple[For, ...], Store], copy: tuple[tuple[For, ...], Load, Store]) -> Affine | None:
    """The address in the array of an element that is stored to the window."""
    (loops, store), (others, load, to) = found, copy
    by = {load.at.coefficient(other.index): other for other in others}
    constant = load.at.constant
    if len(loops) != len(others) or len(by) < len(others) or len(store.at.terms) != len(loops):
        return None
    if len(load.at.terms) != len(others) or not _zero(constant) or not _zero(store.at.constant):
        return None
    place = Affine(to.at.constant)
    for loop in loops:
        other = by.pop(store.at.coefficient(loop.index), None)
        if other is None or other.extent != loop.extent:
            return None
        place = place + Affine.of(loop.index) * to.at.coefficient(other.index)
    return place


def _zero(n: DimLike) -> bool:
    return n.__class__ is int and n == 0


def _redirected(s: Statement, old: Store, new: Store) -> Statement:
    """A nest with one store redirected to another buffer."""
    if s is old:
        return new
    inner = blocks(s)
    return with_blocks(s, [tuple([_redirected(t, old, new) for t in b]) for b in inner]) if inner else s
