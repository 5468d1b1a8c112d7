"""Online checkpointing: the states to keep while the number of steps is unknown.

With few slots, evict the state whose loss costs least if the loop ended now. With many slots, where that choice is
expensive, evict several states at a time, so that the gaps become those of binomial checkpointing for a horizon, a
number of steps somewhat larger than the current one. Compare Q. Wang, P. Moin and G. Iaccarino, SIAM J. Sci. Comput. 31
(2009) 2549-2567, and P. Stumm and A. Walther, SIAM J. Sci. Comput. 32 (2010) 836-854, who choose states differently.
"""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad.control_flow._binomial import repeated_steps, repetition
from tenferro_ad.control_flow._states import Ranks, number, row, with_row
from tenferro_runtime import cond, fori_loop, maximum, where, while_loop

NEVER: Final = 2**62
"""A step number that no loop reaches."""

SINGLE_EVICTION_MAX_SLOTS: Final = 256
"""Up to this number of slots, evict one state at a time."""

HORIZON_GROWTH: Final = 50
"""The horizon grows by one part in this many."""


class Online:
    """The strategy for an unknown number of steps with `slots` slots: replaces states once all slots are in use."""

    def __init__(self, slots: Any) -> None:
        self.slots = self.horizon = slots
        self.many = slots > SINGLE_EVICTION_MAX_SLOTS

    def with_room(self, ranks: Ranks, k: Any, horizon: Any) -> tuple[Ranks, Any]:
        """The ranks with a free slot for the state before step `k`, and the horizon."""

        def unused(ranks: Ranks, horizon: Any) -> tuple[Ranks, Any]:
            return ranks._replace(places=with_row(ranks.places, ranks.count, ranks.count)), horizon

        def one(ranks: Ranks, horizon: Any) -> tuple[Ranks, Any]:
            full = ranks.count == self.slots
            return cond(full, lambda ranks: self._without_one(ranks, k), lambda ranks: ranks, ranks), horizon

        def replaced(ranks: Ranks, horizon: Any) -> tuple[Ranks, Any]:
            several = lambda ranks, horizon: self._spread_out(ranks, k, horizon)
            return cond(self.many, several, one, ranks, horizon)

        return cond(k < self.slots, unused, replaced, ranks, horizon)

    def spacing(self, k: Any, count: Any, horizon: Any) -> Any:
        """The number of steps from the state before step `k`, one of `count`, to the next one to store."""
        slots = self.slots

        def later() -> Any:
            wide = lambda: self._gap(slots - count + 1, horizon)
            return cond(self.many, wide, lambda: maximum(repetition(k, slots)[0] - 1, 1))

        return where(slots > 1, cond(k + 1 < slots, lambda: number(1), later), NEVER)

    def _without_one(self, ranks: Ranks, k: Any) -> Ranks:
        """Evict the state whose loss costs least if the loop ends before step `k`; all slots are in use.

        A state of rank j has ``slots - j`` slots for the steps after it, and one more if an earlier state is evicted.
        """
        slots, (steps, places, count) = self.slots, ranks

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
        return Ranks(steps, with_row(places, slots - 1, free), count - 1)

    def _gap(self, room: Any, horizon: Any) -> Any:
        """The number of steps from a state with `room` slots for the steps after it to the next state.

        With r repetitions for the horizon, gaps from beta(room, r - 2) to beta(room, r - 1) are optimal.
        """
        r, reach, below = repetition(horizon, self.slots)
        widest = fori_loop(1, r, lambda j, b: b * (room + j) // j, number(1))
        narrowest = widest * (r - 1) // maximum(room + r - 1, 1)
        return maximum(narrowest + (widest - narrowest) * (horizon - below) // maximum(reach - below, 1), 1)

    def _spread_out(self, ranks: Ranks, k: Any, horizon: Any) -> tuple[Ranks, Any]:
        """Widen the gaps until a slot is free: the ranks and the new horizon."""

        def wider(state: tuple[Ranks, Any]) -> tuple[Ranks, Any]:
            ranks, horizon = state
            horizon = maximum(horizon, k)
            horizon = horizon + maximum(horizon // HORIZON_GROWTH, 1)
            return self._with_gaps(ranks, horizon), horizon

        return while_loop(lambda state: state[0].count == self.slots, wider, (ranks, horizon))

    def _with_gaps(self, ranks: Ranks, horizon: Any) -> Ranks:
        """Keep the states nearest to the ends of gaps; evicted states get the last ranks."""
        slots = self.slots

        def look(state: tuple[Any, ...]) -> tuple[Any, ...]:
            rank, last, goal, ranks = state
            here, before = row(ranks.steps, rank), row(ranks.steps, rank - 1)

            def keep(ranks: Ranks) -> tuple[Any, ...]:
                steps, places, count = ranks
                nearer = (rank - 1 > last) & (goal - before < here - goal)
                chosen, step = where(nearer, rank - 1, rank), where(nearer, before, here)
                mine, other = row(places, chosen), row(places, count)
                places = with_row(with_row(places, chosen, other), count, mine)
                goal_after = step + self._gap(slots - count, horizon)
                kept = Ranks(with_row(steps, count, step), places, count + 1)
                return where(nearer, rank, rank + 1), chosen, goal_after, kept

            def drop(ranks: Ranks) -> tuple[Any, ...]:
                return rank + 1, last, goal, ranks

            return cond(here < goal, drop, keep, ranks)

        first = (number(1), number(0), self._gap(slots, horizon), ranks._replace(count=number(1)))
        return while_loop(lambda state: state[0] < slots, look, first)[3]  # type: ignore[no-any-return]
