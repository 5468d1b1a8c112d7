"""The arena: sharing of memory between the temporaries of a function, valid for all values of the symbolic sizes.

A temporary is live from the first to the last statement of a block that mentions it. If an iteration of a loop may read
it before writing all of it, it is live throughout the outermost loop around it. Iterations in any order use all their
buffers at the same time. Swapped buffers are live together.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenferro_tensor.loop_ir._function import LoopFunction
from tenferro_tensor.loop_ir._nodes import Buffer, Call, For, Order, Statement, Store, While
from tenferro_tensor.loop_ir._traversal import blocks, swapped, touches
from tenferro_tensor_core import DimLike, decide

Lifetime = tuple[int, int]
"""Indices of the first and the last statement, in textual order."""


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """Memory assignment of the temporaries.

    Attributes:
        slots: size of each slot in bytes.
        slot_of: index of the slot, by number of the buffer.
    """

    slots: tuple[DimLike, ...]
    slot_of: Mapping[int, int]


def plan_arena(function: LoopFunction) -> ArenaPlan:
    """Assign memory to the temporaries of a function; temporaries that are never live together may share it.

    Temporaries of symbolic size share only with those of equal size; others also reuse larger slots.

    Args:
        function: the function.

    Returns:
        The plan.
    """
    if not function.temporaries:
        return ArenaPlan((), {})
    lives = lifetimes(function)
    slots: list[DimLike] = []
    used: list[list[Lifetime]] = []  # of each slot, sorted and without overlaps
    slot_of: dict[int, int] = {}
    sized = [(math.prod((b.dtype.itemsize, *b.shape)), b) for b in function.temporaries]
    largest_first = sorted(sized, key=lambda pair: -pair[0] if isinstance(pair[0], int) else 0)
    for size, buffer in largest_first:
        first, last = lives[buffer.number]
        fitting = [
            k
            for k, slot in enumerate(slots)
            if (slot == size or (isinstance(slot, int) and isinstance(size, int) and slot > size))
            and _is_free(used[k], first, last)
        ]
        # Slots are created in order of decreasing size, so the last one that fits wastes the least.
        k = fitting[-1] if fitting else len(slots)
        if not fitting:
            slots.append(size)
            used.append([])
        insort(used[k], (first, last))
        slot_of[buffer.number] = k
    return ArenaPlan(tuple(slots), slot_of)


def _is_free(used: Sequence[Lifetime], first: int, last: int) -> bool:
    """Whether a lifetime overlaps no entry of a sorted list."""
    k = bisect_right(used, (first, last))
    return (k == 0 or used[k - 1][1] < first) and (k == len(used) or last < used[k][0])


def lifetimes(function: LoopFunction) -> dict[int, Lifetime]:
    """Lifetime of each temporary, by its number."""
    together = _swapped_together(function)
    members: dict[int, set[int]] = defaultdict(set)
    for number, group in together.items():
        members[group].add(number)
    tree = _Tree(function.body)
    found: dict[int, Lifetime] = {}
    for b in function.temporaries:
        if b.number in together:
            found[b.number] = tree.lifetime(members[together[b.number]], None)
        else:
            found[b.number] = tree.lifetime({b.number}, b)
    return found


def _swapped_together(function: LoopFunction) -> dict[int, int]:
    """The group of each buffer that swaps memory with others, by number of the buffer."""
    group: dict[int, int] = {}
    for _, (a, b) in swapped(function.body):
        old, new = group.get(a.number, a.number), group.get(b.number, b.number)
        group.update({number: new for number, of in group.items() if of == old})
        group[a.number] = group[b.number] = new
    return group


class _Tree:
    """The statements of a function in textual order, and the statements of each block that use a buffer."""

    def __init__(self, body: Sequence[Statement]) -> None:
        self.body = body
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self._users: dict[int, dict[int, list[Statement]]] = {}  # by block, then by number of the buffer
        self._count = 0
        self._number(body)

    def _number(self, statements: Sequence[Statement]) -> set[int]:
        inside: set[int] = set()
        users = self._users[id(statements)] = defaultdict(list)
        for s in statements:
            self.first.setdefault(id(s), self._count)
            self._count += 1
            own = {t.buffer.number for t in touches([s])} if not blocks(s) else set()
            if isinstance(s, For | While):
                own |= {b.number for pair in s.swaps for b in pair}
            for block in blocks(s):
                own |= self._number(block)
            self.last[id(s)] = self._count - 1
            inside |= own
            for number in own:
                users[number].append(s)
        return inside

    def lifetime(self, numbers: set[int], alone: Buffer | None) -> Lifetime:
        """The joint lifetime of buffers; if there is only one, it is `alone`."""
        block, loop = self.body, None
        while True:
            users = self._users_of(block, numbers)
            if not users:
                return 0, -1
            inner = self._only_block(users[0], numbers) if len(users) == 1 else None
            if inner is None:
                break
            if loop is None and isinstance(users[0], For | While):
                loop = users[0]
            block = inner
        if loop is not None and (alone is None or not _written_whole(users[0], alone)):
            users = [loop]
        return self.first[id(users[0])], self.last[id(users[-1])]

    def _users_of(self, block: Sequence[Statement], numbers: set[int]) -> list[Statement]:
        """The statements of a block that use buffers, in order."""
        users = self._users[id(block)]
        if len(numbers) == 1:
            return users.get(next(iter(numbers)), [])
        found = {id(s): s for number in numbers for s in users.get(number, ())}
        return sorted(found.values(), key=lambda s: self.first[id(s)])

    def _only_block(self, s: Statement, numbers: set[int]) -> Sequence[Statement] | None:
        """The block inside a statement that contains all its uses of the buffers; None if there is none."""
        if isinstance(s, For | While) and any(b.number in numbers for pair in s.swaps for b in pair):
            return None
        if isinstance(s, For) and s.order is not Order.GIVEN:
            return None
        using = [block for block in blocks(s) if any(number in self._users[id(block)] for number in numbers)]
        return using[0] if len(using) == 1 else None


def _written_whole(s: Statement, buffer: Buffer) -> bool:
    """Whether a statement always writes all elements of a buffer and reads none."""
    used = [t for t in touches([s]) if t.buffer.number == buffer.number]
    if len(used) != 1 or not used[0].writes:
        return False
    extents: dict[int, DimLike] = {}
    while isinstance(s, For):
        extents[s.index.number] = s.extent
        s = next(t for t in s.body if any(u.buffer.number == buffer.number for u in touches([t])))
    if not isinstance(s, Store | Call):
        return False
    at = used[0].at
    axes = [(by, extents.get(reg.number)) for reg, by in at.terms] + [(by, n) for n, by in used[0].axes]
    return decide(at.constant, "==", 0) is True and _covers(axes, math.prod(buffer.shape))


def _covers(axes: Sequence[tuple[DimLike, DimLike | None]], size: DimLike) -> bool:
    """Whether strides and extents cover all of the first `size` positions."""
    left = [(by, extent) for by, extent in axes if extent != 1]
    reached: DimLike = 1
    while left:
        k = next((k for k, (by, _) in enumerate(left) if by == reached), None)
        extent = None if k is None else left.pop(k)[1]
        if extent is None:
            return False
        reached = reached * extent
    return decide(reached, "==", size) is True
