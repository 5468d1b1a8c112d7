"""Binomial checkpointing: the states to keep for a known number of steps.

With `s` slots for states, one of which holds the state before the first step, beta(s, r) = C(s + r, s) steps can be
reversed if each is repeated at most r times; the minimum for n steps is r n - beta(s + 1, r - 1) repeated steps.
A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000) 19-45.
"""

from __future__ import annotations

from typing import Any, Final

from tenferro_ad.control_flow._states import Ranks
from tenferro_runtime import cond, maximum, minimum, while_loop


class Binomial:
    """The strategy for `total` steps with `slots` slots: never replaces a state."""

    horizon: Final = ()

    def __init__(self, total: Any, slots: Any) -> None:
        self.total, self.slots = total, slots

    def with_room(self, ranks: Ranks, k: Any, horizon: Any) -> tuple[Ranks, Any]:
        """The ranks with a free slot for the state before step `k`, and the horizon."""
        return ranks, horizon

    def spacing(self, k: Any, count: Any, horizon: Any = ()) -> Any:
        """The number of steps from the state before step `k`, one of `count`, to the next one to store."""
        steps, slots = self.total - k, self.slots - count + 1

        def split() -> Any:
            r, _, below = repetition(steps, slots)
            rest = below * slots // maximum(slots + r - 1, 1)  # beta(slots - 1, r - 1)
            return maximum(minimum(below, steps - rest), 1)

        return cond(slots > 1, split, lambda: steps)


def repetition(steps: Any, slots: Any) -> tuple[Any, Any, Any]:
    """The least r for which ``beta(slots, r) >= steps``, ``beta(slots, r)``, and ``beta(slots, r - 1)``.

    No step has to be repeated more than r times. Arguments and results are 0-d integers.
    """

    def more(now: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        r, reach, _ = now
        return r + 1, reach * (slots + r + 1) // (r + 1), reach

    zero = 0 * steps
    return while_loop(lambda now: now[1] < steps, more, (zero, zero + 1, zero))


def repeated_steps(steps: Any, slots: Any) -> Any:
    """The minimum number of repeated steps when reversing `steps` steps from a stored state.

    Args:
        steps: number of steps, at least 1.
        slots: number of slots, including that of the stored state.
    """

    def formula() -> Any:
        r, reach, _ = repetition(steps, slots)
        return r * steps - reach * r // (slots + 1)

    return cond(slots > 1, formula, lambda: steps * (steps - 1) // 2)
