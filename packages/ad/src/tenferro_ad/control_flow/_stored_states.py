"""States of a loop in slots, stored by the forward pass, from which the backward pass recomputes steps.

A state is the carry before a step. Ranks order the states by step; `places` maps ranks to slots, and slots with ranks
of at least `count` are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tenferro_runtime import while_loop
from tenferro_runtime.control_flow.primitives import uninitialized
from tenferro_runtime.extension import Program
from tenferro_runtime.ir import applied
from tenferro_tensor import HOST, Spec, Tensor
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike, int64

INDEX: Final = Spec((), int64, HOST)


class StoredStates(NamedTuple):
    """Slots and their contents.

    Attributes:
        slots: an array for each leaf of the carry, with a leading axis of slots.
        steps: by rank, the number of the step that follows the state.
        places: by rank, the slot of the state.
        count: number of slots in use.
        total: number of steps of the loop.
    """

    slots: tuple[Any, ...]
    steps: Any
    places: Any
    count: Any
    total: Any


def specs_of_states(carry: Sequence[Spec], slots: DimLike) -> tuple[Spec, ...]:
    """Specs of the arrays of `StoredStates`, in order."""
    kept = [s.with_(shape=(slots, *s.shape)) for s in carry]
    ranks = Spec((slots,), int64, HOST)
    return (*kept, ranks, ranks, INDEX, INDEX)


def from_arrays(arrays: Sequence[Any]) -> StoredStates:
    """The states made of given arrays; the inverse of `arrays_of`."""
    *slots, steps, places, count, total = arrays
    return StoredStates(tuple(slots), steps, places, count, total)


def arrays_of(states: StoredStates) -> tuple[Any, ...]:
    """The arrays of states, in the order of their specs."""
    return (*states.slots, *states[1:])


def empty(spec: Spec) -> Any:
    """An uninitialized array, which must be written before it is read."""
    return uninitialized(shape=spec.shape, dtype=spec.dtype, place=spec.place)


def number(d: DimLike) -> Any:
    """A size as a 0-d integer."""
    return Tensor.adopt(d, dtype=int64) if d.__class__ is int else c.convert(c.dim_value(size=d), dtype=int64)


def row(x: Any, i: Any) -> Any:
    """The row of an array at an index in range."""
    shape = x.spec.shape[1:]
    return c.reshape(c.dynamic_slice(x, *_starts(i, len(shape)), sizes=(1, *shape)), shape=shape)


def with_row(x: Any, i: Any, value: Any) -> Any:
    """An array with the row at an index in range replaced."""
    shape = value.spec.shape
    return c.dynamic_update_slice(x, c.reshape(value, shape=(1, *shape)), *_starts(i, len(shape)))


def _starts(i: Any, ndim: int) -> list[Any]:
    return [i, *[Tensor.adopt(0, dtype=int64)] * ndim]


def stored(states: StoredStates, carry: Sequence[Any], step: Any) -> StoredStates:
    """Store one more state; there must be a free slot."""
    place = row(states.places, states.count)
    slots = tuple([with_row(x, place, v) for x, v in zip(states.slots, carry, strict=True)])
    return states._replace(slots=slots, steps=with_row(states.steps, states.count, step), count=states.count + 1)


def last_state(states: StoredStates) -> tuple[tuple[Any, ...], Any]:
    """The carry stored last, and the number of the step that follows it."""
    place = row(states.places, states.count - 1)
    return tuple([row(x, place) for x in states.slots]), row(states.steps, states.count - 1)


class LoopSteps(NamedTuple):
    """The steps of a loop as functions of values in a trace.

    Attributes:
        body: the body.
        fixed: its constants.
        carry: number of carries.
        sliced: arrays that are sliced along their first axis.
        total: number of steps; ``None`` for a loop with a condition, which has no slices.
        reverse: whether the first step takes the last slice.
    """

    body: Program
    fixed: tuple[Any, ...]
    carry: int
    sliced: tuple[Any, ...]
    total: Any
    reverse: bool

    def at(self, k: Any) -> Any:
        """The index of the slices of a step."""
        return self.total - 1 - k if self.reverse else k

    def slices(self, k: Any) -> list[Any]:
        """The slices of a step."""
        if not self.sliced:
            return []
        i = self.at(k)
        return [row(x, i) for x in self.sliced]

    def run(self, k: Any, carry: Sequence[Any]) -> tuple[Any, ...]:
        """One step: the next carry, then rows."""
        return applied(self.body, [*self.fixed, *carry, *self.slices(k)])

    def advanced(self, carry: tuple[Any, ...], first: Any, last: Any) -> tuple[Any, ...]:
        """The carry after the steps from `first` to `last`, exclusive; computes no rows."""

        def step(state: tuple[Any, tuple[Any, ...]]) -> tuple[Any, tuple[Any, ...]]:
            k, now = state
            return k + 1, self.run(k, now)[: self.carry]

        return while_loop(lambda state: state[0] < last, step, (first, carry))[1]

    def advanced_with_rows(
        self, carry: tuple[Any, ...], rows: tuple[Any, ...], first: Any, last: Any
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Like `advanced`, but also writes the rows of these steps into arrays."""

        def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
            k, now, made = state
            found = self.run(k, now)
            i = self.at(k)
            after = tuple([with_row(x, i, v) for x, v in zip(made, found[self.carry :], strict=True)])
            return k + 1, found[: self.carry], after

        _, now, made = while_loop(lambda state: state[0] < last, step, (first, carry, rows))
        return now, made
