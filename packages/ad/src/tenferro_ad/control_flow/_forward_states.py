"""The forward pass of a loop that stores states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_ad.control_flow._binomial import next_stored
from tenferro_ad.control_flow._online import NEVER, Ranks, spacing, with_room
from tenferro_ad.control_flow._stored_states import (
    LoopSteps,
    StoredStates,
    empty,
    number,
    specs_of_states,
    stored,
)
from tenferro_runtime import arange, cond, minimum, scan, sum, where, while_loop
from tenferro_tensor import Spec
from tenferro_tensor_core import DimLike


def through_known(
    steps: LoopSteps, carry: tuple[Any, ...], rows: tuple[Spec, ...], slots: DimLike
) -> tuple[tuple[Any, ...], tuple[Any, ...], StoredStates]:
    """Run a loop with a known number of steps: the last carry, the rows and the states.

    Binomial checkpointing determines the steps before which states are stored.
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
    """Run a loop with a condition: the last carry and the states.

    The number of steps is unknown, so once all slots are in use, new states replace old ones. This is the online
    checkpointing of Q. Wang, P. Moin and G. Iaccarino, SIAM J. Sci. Comput. 31 (2009) 2549-2567, and of P. Stumm and
    A. Walther, SIAM J. Sci. Comput. 32 (2010) 836-854, with a different choice of states.
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
        k, live, now, states, horizon = state
        ranks, horizon = with_room(Ranks(states.steps, states.places, states.count), k, available, horizon)
        states = stored(states._replace(steps=ranks.steps, places=ranks.places, count=ranks.count), now, k)
        due = minimum(k + spacing(k, states.count, available, horizon), most)
        return *while_loop(lambda s: s[1] & (s[0] < due), step, (k, live, now)), states, horizon

    first = (zero, goes_on(carry), carry, states, available)
    k, _, last, states, _ = while_loop(lambda s: s[1] & (s[0] < most), segment, first)
    return last, states._replace(total=k)
