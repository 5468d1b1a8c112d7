"""The arithmetic of binomial checkpointing, in numbers of a program.

With `s` slots for states, one of which holds the state before the first step, beta(s, r) = C(s + r, s) steps can be
reversed if each is repeated at most r times; n steps then take r n - beta(s + 1, r - 1) repeated steps and no fewer.
A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000) 19-45.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenferro_runtime import cond, maximum, minimum, while_loop


class Repetition(NamedTuple):
    """The least r for which ``beta(slots, r) >= steps``, and binomial coefficients beside it.

    Attributes:
        r: how often a step is repeated at most.
        reach: ``beta(slots, r)``.
        below: ``beta(slots, r - 1)``.
    """

    r: Any
    reach: Any
    below: Any


def repetition(steps: Any, slots: Any) -> Repetition:
    """How often steps are repeated; 0-d integers."""

    def more(now: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        r, reach, _ = now
        return r + 1, reach * (slots + r + 1) // (r + 1), reach

    zero = 0 * steps
    return Repetition(*while_loop(lambda now: now[1] < steps, more, (zero, zero + 1, zero)))


def repeated_steps(steps: Any, slots: Any) -> Any:
    """The least number of steps that are repeated while `steps` of them are reversed from a stored state.

    Args:
        steps: number of steps, at least 1.
        slots: number of slots, that of the stored state included.
    """

    def formula() -> Any:
        r, reach, _ = repetition(steps, slots)
        return r * steps - reach * r // (slots + 1)

    return cond(slots > 1, formula, lambda: steps * (steps - 1) // 2)


def next_stored(steps: Any, slots: Any) -> Any:
    """After how many steps from a stored state the next one is stored, so that the fewest steps are repeated.

    Args:
        steps: number of steps that are reversed from the stored state.
        slots: number of slots, that of the stored state included. With one there is no next state.
    """

    def split() -> Any:
        r, _, below = repetition(steps, slots)
        rest = below * slots // maximum(slots + r - 1, 1)  # beta(slots - 1, r - 1)
        return maximum(minimum(below, steps - rest), 1)

    return cond(slots > 1, split, lambda: steps)
