"""States of a loop in slots.

A state is the carry before a step. Ranks order the states by step; `places` maps ranks to slots, and slots with ranks
of at least `count` are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tenferro_runtime import arange
from tenferro_runtime.control_flow.primitives import uninitialized
from tenferro_tensor import HOST, Spec, Tensor
from tenferro_tensor import catalog as c
from tenferro_tensor_core import DimLike, int64


class Ranks(NamedTuple):
    """The bookkeeping of states.

    Attributes:
        steps: by rank, the number of the step that follows the state.
        places: by rank, the slot of the state.
        count: number of slots in use.
    """

    steps: Any
    places: Any
    count: Any


class States(NamedTuple):
    """Slots and their contents.

    Attributes:
        slots: an array for each leaf of the carry, with a leading axis of slots.
        ranks: the steps and slots of the states.
        total: number of steps of the loop.
    """

    slots: tuple[Any, ...]
    ranks: Ranks
    total: Any

    def pushed(self, carry: Sequence[Any], step: Any) -> States:
        """Store one more state; there must be a free slot."""
        steps, places, count = self.ranks
        place = row(places, count)
        slots = tuple([with_row(x, place, v) for x, v in zip(self.slots, carry, strict=True)])
        return self._replace(slots=slots, ranks=Ranks(with_row(steps, count, step), places, count + 1))

    def popped(self) -> tuple[Any, tuple[Any, ...], States]:
        """The number of the step that follows the last state, this state, and the others."""
        steps, places, count = self.ranks
        last = count - 1
        place = row(places, last)
        carry = tuple([row(x, place) for x in self.slots])
        return row(steps, last), carry, self._replace(ranks=self.ranks._replace(count=last))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays, in the order of `specs_of_states`."""
        return (*self.slots, *self.ranks, self.total)


def specs_of_states(carry: Sequence[Spec], slots: DimLike) -> tuple[Spec, ...]:
    """Specs of the arrays of `States`."""
    ranks, index = Spec((slots,), int64, HOST), Spec((), int64, HOST)
    return (*[s.with_(shape=(slots, *s.shape)) for s in carry], ranks, ranks, index, index)


def states_of(arrays: Sequence[Any]) -> States:
    """The states with given arrays."""
    *slots, steps, places, count, total = arrays
    return States(tuple(slots), Ranks(steps, places, count), total)


def no_states(carry: Sequence[Spec], slots: DimLike, *, assigned: bool) -> States:
    """Free slots; with `assigned`, each rank has its slot."""
    *kept, steps, places = map(empty, specs_of_states(carry, slots)[:-2])
    return States(tuple(kept), Ranks(steps, arange(slots) if assigned else places, number(0)), number(0))


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
