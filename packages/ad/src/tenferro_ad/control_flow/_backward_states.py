"""The way back through a loop from stored states: the steps between two states are repeated, one state at a time."""

from __future__ import annotations

from typing import Any

from tenferro_ad.control_flow._binomial import next_stored
from tenferro_ad.control_flow._stored_states import LoopSteps, StoredStates, last_state, number, stored
from tenferro_runtime import where, while_loop
from tenferro_tensor_core import DimLike


def carry_before(
    steps: LoopSteps, states: StoredStates, k: Any, slots: DimLike
) -> tuple[tuple[Any, ...], StoredStates]:
    """The carry before step `k`, and the states that are left for the steps before.

    On the way from the last state to the step, states are stored where binomial checkpointing asks for it.
    """
    available = number(slots)

    def segment(state: tuple[Any, ...]) -> tuple[Any, ...]:
        at, now, states = state
        states = stored(states, now, at)
        ahead = next_stored(k + 1 - at, available - states.count + 1)
        ahead = where(at + ahead < k, ahead, k - at)
        return at + ahead, steps.advanced(now, at, at + ahead), states

    # The last state is taken out, and stored again where it is needed once more: what stores always, stores in place.
    now, at = last_state(states)
    states = states._replace(count=states.count - 1)
    _, now, states = while_loop(lambda state: state[0] < k, segment, (at, now, states))
    return now, states
