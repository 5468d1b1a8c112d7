"""`reuse_memory`: an array that a loop computes element by element from a dying array reuses its memory.

The law: a buffer may reuse the memory of another one if no element of the old one is accessed after the new one is
written there. This holds if the last statement that accesses the old one precedes the first that accesses the new one;
or if both are the same loop, no two iterations access the same shared memory, and its body obeys the law. The arena
handles the first case, this pass the second. A softmax, for instance, writes exponentials where their quotients go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from tenferro_runtime.lowering._rewriting import renamed, swapped
from tenferro_runtime.lowering.passes._conflicts import Extents, meet_elsewhere
from tenferro_runtime.lowering.passes._footprint import Footprint, Footprints, footprint
from tenferro_runtime.lowering.passes._windows import copy_nest
from tenferro_tensor.loop_ir import Buffer, For, LoopFunction, Statement, everything


def reuse_memory(function: LoopFunction) -> LoopFunction:
    """Let buffers reuse the memory of dying ones.

    Args:
        function: the function.

    Returns:
        The function with fewer temporaries.
    """
    known: Footprints = {}
    body, footprints = function.body, [footprint(s, known) for s in function.body]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for k, f in enumerate(footprints):
        for number in f.buffers:
            first.setdefault(number, k)
            last[number] = k
    moving = swapped(body)
    fixed = moving | {b.number for b in function.inputs}
    new = [b for b in (*function.outputs, *function.temporaries) if b.number in first and b.number not in fixed]
    beginning: dict[int, list[Buffer]] = {}
    for b in new:
        beginning.setdefault(first[b.number], []).append(b)
    taken: dict[int, Buffer] = {}
    busy: set[tuple[int, int]] = set()  # a loop reuses memory once, because the law concerns pairs
    # The law can hold inside of plain loops alone. The others, as whole branches, have the most buffers to compare.
    plain = {k for k in beginning if _is_plain(body[k], footprints[k])}
    extents: dict[int, Extents] = {}
    for x in function.temporaries:
        k = last.get(x.number, -1)
        for y in beginning[k] if k in plain and x.number not in moving else ():
            free = x != y and busy.isdisjoint({(k, x.number), (k, y.number)})
            alike = x.dtype == y.dtype and math.prod(x.shape) == math.prod(y.shape)
            if not (free and alike):
                continue
            if k not in extents:
                extents[k] = _extents(body[k : k + 1])
            if _obeys(body[k : k + 1], x.number, y.number, extents[k], known):
                busy |= {(k, x.number), (k, y.number)}
                taken[x.number] = y
                break
    if not taken:
        return function
    final = {number: _end(y, taken) for number, y in taken.items()}
    temporaries = tuple([b for b in function.temporaries if b.number not in final])
    body = tuple([s for s in renamed(body, final) if not _copies_to_itself(s)])
    return replace(function, temporaries=temporaries, body=body)


def _copies_to_itself(s: Statement) -> bool:
    found = copy_nest(s)
    return found is not None and (found[1].buffer, found[1].at) == (found[2].buffer, found[2].at)


def _end(y: Buffer, taken: dict[int, Buffer]) -> Buffer:
    """The last buffer of a chain of reuses."""
    while y.number in taken:
        y = taken[y.number]
    return y


def may_take_over(body: Sequence[Statement], x: int, y: int, known: Footprints) -> bool:
    """Whether statements obey the law for an old and a new buffer.

    Args:
        body: the statements.
        x: number of the old buffer.
        y: number of the new buffer.
        known: footprints.

    Returns:
        True if they do.
    """
    return _obeys(body, x, y, _extents(body), known)


def _extents(body: Sequence[Statement]) -> Extents:
    return {s.index.number: s.extent for s in everything(body) if isinstance(s, For)}


def _is_plain(s: Statement, f: Footprint) -> TypeGuard[For]:
    return isinstance(s, For) and f.regular and not f.branches


def _obeys(body: Sequence[Statement], x: int, y: int, extents: Extents, known: Footprints) -> bool:
    footprints = [footprint(s, known) for s in body]
    last = max([k for k, f in enumerate(footprints) if x in f.buffers], default=-1)
    first = min([k for k, f in enumerate(footprints) if y in f.buffers], default=len(body))
    if last != first:
        return last < first
    s, f = body[first], footprints[first]
    if not _is_plain(s, f):
        return False
    inside = f.inside - {s.index.number}
    old, new = [*f.loads.get(x, ()), *f.stores.get(x, ())], [*f.loads.get(y, ()), *f.stores.get(y, ())]
    meet = any(meet_elsewhere(a, b, s.index, inside, extents) for a in old for b in new)
    return not meet and _obeys(s.body, x, y, extents, known)
