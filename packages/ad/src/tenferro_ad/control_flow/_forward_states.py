"""The way forward through a loop that stores states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_ad.control_flow._binomial import next_stored, repeated_steps, repetition
from tenferro_ad.control_flow._stored_states import (
    LoopSteps,
    StoredStates,
    empty,
    number,
    row,
    specs_of_states,
    stored,
    with_row,
)
from tenferro_runtime import arange, cond, fori_loop, maximum, minimum, scan, sum, where, while_loop
from tenferro_tensor import Spec
from tenferro_tensor_core import DimLike

NEVER = 2**62
"""The number of a step that no loop reaches."""


def through_known(
    steps: LoopSteps, carry: tuple[Any, ...], rows: tuple[Spec, ...], slots: DimLike
) -> tuple[tuple[Any, ...], tuple[Any, ...], StoredStates]:
    """All steps of a loop whose number of steps is known: the last carry, the rows and the states.

    States are stored before the steps that binomial checkpointing asks for.
    """
    total, available = steps.total, number(slots)

    def segment(state: tuple[Any, ...], rank: Any) -> tuple[Any, Any]:
        k, now, made = state
        ahead = cond(k < total, lambda: next_stored(total - k, available - rank), lambda: total - k)
        after, made_after = steps.advanced_with_rows(now, made, k, k + ahead)
        return (k + ahead, after, made_after), (now, k)

    first = (0 * total, carry, tuple([empty(s) for s in rows]))
    (_, last, made), (kept, before) = scan(segment, first, arange(slots))
    count = sum(where(before < total, 1, 0))
    return last, made, StoredStates(kept, before, arange(slots), count, total)


def through_unknown(
    steps: LoopSteps,
    goes_on: Callable[[tuple[Any, ...]], Any],
    carry: tuple[Any, ...],
    slots: DimLike,
    max_steps: DimLike | None,
) -> tuple[tuple[Any, ...], StoredStates]:
    """All steps of a loop with a condition: the last carry and the states.

    Nobody knows when the loop will end. Once all slots are in use, the state is given up without which the fewest steps
    would be repeated if it ended now; this is the online checkpointing of Q. Wang, P. Moin and G. Iaccarino, SIAM J.
    Sci. Comput. 31 (2009) 2549-2567, and of P. Stumm and A. Walther, SIAM J. Sci. Comput. 32 (2010) 836-854, with the
    choice by what it costs.
    """
    available, zero = number(slots), number(0)
    arrays = [empty(s) for s in specs_of_states([x.spec for x in carry], slots)[:-2]]
    states = StoredStates(tuple(arrays[:-2]), arrays[-2], arrays[-1], zero, zero)
    most = number(NEVER if max_steps is None else max_steps)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, _, now = state
        after = steps.run(k, now)
        return k + 1, goes_on(after), after

    def segment(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, live, now, states = state
        states = stored(with_room(states, k, available), now, k)
        due = minimum(k + spacing(k, available), most)
        return *while_loop(lambda s: s[1] & (s[0] < due), step, (k, live, now)), states

    first = (zero, goes_on(carry), carry, states)
    k, _, last, states = while_loop(lambda s: s[1] & (s[0] < most), segment, first)
    return last, states._replace(total=k)


def with_room(states: StoredStates, k: Any, slots: Any) -> StoredStates:
    """The states with a free slot for the one before step `k`: one that was never used, or that of another state."""

    def fresh(steps: Any, places: Any, count: Any) -> tuple[Any, ...]:
        return steps, with_row(places, count, count), count

    def used(steps: Any, places: Any, count: Any) -> tuple[Any, ...]:
        return tuple(thinned(steps, places, count, k, slots))

    ranks = cond(k < slots, fresh, used, states.steps, states.places, states.count)
    return states._replace(steps=ranks[0], places=ranks[1], count=ranks[2])


def spacing(k: Any, slots: Any) -> Any:
    """After how many steps another state is stored: a gap that is not repeated more often than all others are."""
    usual = cond(k < slots, lambda: number(1), lambda: maximum(repetition(k, slots).r - 1, 1))
    return where(slots > 1, usual, NEVER)


def thinned(steps: Any, places: Any, count: Any, k: Any, slots: Any) -> tuple[Any, Any, Any]:
    """The ranks of full slots without the state whose loss costs least if the loop ends before step `k`.

    A state of rank j has ``slots - j`` slots for the steps behind it, and one more where an earlier one is given up.
    """

    def cost(j: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        rank = slots - 1 - j
        least, which, end, shifted, own = state
        start, before = row(steps, rank), row(steps, rank - 1)
        room = slots - rank + 1
        moved = repeated_steps(end - start, room)
        own_before = repeated_steps(start - before, room)
        loss = repeated_steps(end - before, room) - own_before - own + shifted
        better = loss < least
        return where(better, loss, least), where(better, rank, which), start, shifted + moved - own, own_before

    tail = row(steps, slots - 1)
    first = (number(NEVER), slots - 1, k, number(0), repeated_steps(k - tail, number(1)))
    _, which, *_ = fori_loop(0, slots - 1, cost, first)
    free = row(places, which)

    def move(rank: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([with_row(x, rank, row(x, rank + 1)) for x in arrays])

    steps, places = fori_loop(which, slots - 1, move, (steps, places))
    return steps, with_row(places, slots - 1, free), count - 1
