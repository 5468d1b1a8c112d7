"""The backward pass of a loop from stored states: recomputes the steps after one state at a time."""

from __future__ import annotations

from typing import Any

from tenferro_ad.control_flow._binomial import next_stored
from tenferro_ad.control_flow._stored_states import LoopSteps, StoredStates, last_state, number, stored
from tenferro_runtime import where, while_loop
from tenferro_tensor_core import DimLike


def carry_before(
    steps: LoopSteps, states: StoredStates, k: Any, slots: DimLike
) -> tuple[tuple[Any, ...], StoredStates]:
    """The carry before step `k`, and the remaining states for the earlier steps.

    While it recomputes the steps from the last state to `k`, it stores states as binomial checkpointing requires.
    """
    available = number(slots)

    def segment(state: tuple[Any, ...]) -> tuple[Any, ...]:
        at, now, states = state
        states = stored(states, now, at)
        ahead = next_stored(k + 1 - at, available - states.count + 1)
        ahead = where(at + ahead < k, ahead, k - at)
        return at + ahead, steps.advanced(now, at, at + ahead), states

    # Always pop the last state, and store it again if needed: an unconditional store can be in place.
    now, at = last_state(states)
    states = states._replace(count=states.count - 1)
    _, now, states = while_loop(lambda state: state[0] < k, segment, (at, now, states))
    return now, states
