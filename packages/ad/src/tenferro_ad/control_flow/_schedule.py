"""Checkpoint schedules: which states of a loop are kept, and how the backward pass restores the others.

The forward pass keeps states in slots: those of binomial checkpointing if the number of steps is known, else those of
online checkpointing, which replaces states while the loop goes on. The backward pass recomputes the steps from the last
state to the one that it needs, and keeps states on the way by binomial checkpointing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenferro_ad.control_flow._binomial import Binomial
from tenferro_ad.control_flow._loop import Loop
from tenferro_ad.control_flow._online import NEVER, Online
from tenferro_ad.control_flow._states import States, empty, no_states, number, row, with_row
from tenferro_runtime import minimum, scan, where, while_loop
from tenferro_runtime.ir import applied
from tenferro_tensor_core import DimLike


class _Position(NamedTuple):
    """A loop before a step.

    Attributes:
        k: number of the step.
        carry: the carry.
        rows: arrays that rows are written to, if they are computed.
        live: whether the condition holds, if it is tested.
    """

    k: Any
    carry: tuple[Any, ...]
    rows: tuple[Any, ...] = ()
    live: tuple[Any, ...] = ()

    def before(self, last: Any) -> Any:
        """Whether a step follows, and its number is less than `last`."""
        return self.live[0] & (self.k < last) if self.live else self.k < last


class Schedule:
    """The schedule of a loop with a number of slots, on values in a trace."""

    def __init__(self, loop: Loop, operands: Sequence[Any], slots: DimLike) -> None:
        start, end = loop.consts, loop.consts + loop.carry
        self.loop, self.slots = loop, slots
        self.total: Any = None if loop.length is None else number(loop.length)
        self.fixed, self.initial = tuple(operands[:start]), tuple(operands[start:end])
        self.sliced = tuple(operands[end:])

    def run_forward(self) -> tuple[tuple[Any, ...], States]:
        """Run the loop: its results and the states."""
        loop, slots, end = self.loop, number(self.slots), self.total
        strategy: Binomial | Online = Online(slots) if end is None else Binomial(end, slots)
        if end is None:
            end = number(NEVER if loop.max_steps is None else loop.max_steps)

        def segment(state: tuple[_Position, States, Any]) -> tuple[_Position, States, Any]:
            at, states, horizon = state
            ranks, horizon = strategy.with_room(states.ranks, at.k, horizon)
            states = states._replace(ranks=ranks).pushed(at.carry, at.k)
            last = minimum(at.k + strategy.spacing(at.k, states.ranks.count, horizon), end)
            return self._advanced(at, last), states, horizon

        rows = tuple(map(empty, loop.outputs[loop.carry :]))
        first = _Position(number(0), self.initial, rows, self._live(self.initial))
        states = no_states([x.spec for x in self.initial], self.slots, assigned=self.total is not None)
        at, states, _ = while_loop(lambda state: state[0].before(end), segment, (first, states, strategy.horizon))
        return (*at.carry, *at.rows), states._replace(total=at.k)

    def run_backward(
        self, step: Callable[..., Any], sums: tuple[Any, ...], states: States, rows: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Run the backward parts of all steps, the last step first.

        Args:
            step: maps the carry before a step, its slices, the sums and the rows to the sums and to further rows.
            sums: initial values of what is accumulated over the steps.
            states: the states of the forward pass.
            rows: arrays with one row for each step.

        Returns:
            The sums and the further rows.
        """
        loop = self.loop

        def segment(state: tuple[Any, Any, States], over: Any) -> tuple[Any, Any]:
            k, sums, states = state
            carry, states = self._restored(states, k)
            sums, made = step(carry, over[0], sums, over[1])
            return (k - 1, sums, states), made

        first = (states.total - 1, sums, states)
        if loop.cond is None:
            over = (self.sliced, rows)
            end, made = scan(segment, first, over, length=loop.length, reverse=not loop.reverse)
        else:
            end, made = while_loop(lambda state: state[0] >= 0, lambda s: segment(s, ((), ()))[0], first), ()
        return end[1], made

    def _restored(self, states: States, k: Any) -> tuple[tuple[Any, ...], States]:
        """The carry before step `k`, and the states for the earlier steps."""
        strategy = Binomial(k + 1, number(self.slots))

        def segment(state: tuple[_Position, States]) -> tuple[_Position, States]:
            at, states = state
            states = states.pushed(at.carry, at.k)
            last = at.k + strategy.spacing(at.k, states.ranks.count)
            return self._advanced(at, where(last < k, last, k)), states

        # Always pop the last state, and store it again if needed: an unconditional store can be in place.
        start, carry, states = states.popped()
        at, states = while_loop(lambda state: state[0].before(k), segment, (_Position(start, carry), states))
        return at.carry, states

    def _advanced(self, at: _Position, last: Any) -> _Position:
        """The position before step `last`, or where the condition fails."""

        def step(at: _Position) -> _Position:
            i = self.total - 1 - at.k if self.loop.reverse else at.k
            outs = applied(self.loop.body, [*self.fixed, *at.carry, *[row(x, i) for x in self.sliced]])
            carry = outs[: self.loop.carry]
            rows = tuple([with_row(x, i, v) for x, v in zip(at.rows, outs[self.loop.carry :])])
            return _Position(at.k + 1, carry, rows, self._live(carry) if at.live else ())

        return while_loop(lambda at: at.before(last), step, at)

    def _live(self, carry: tuple[Any, ...]) -> tuple[Any, ...]:
        return () if self.loop.cond is None else applied(self.loop.cond, [*self.fixed, *carry])[:1]
