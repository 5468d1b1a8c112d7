"""`Step`: one step of an execution plan."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.executing._moves import Action, Kind
from tenferro_tensor import HOST, ComputeDevice

Clock = list[int]
"""How far each queue has certainly come."""


@dataclass(slots=True, eq=False)
class Step:
    """An action with its place in the plan; nobody changes it once the plan is made.

    Attributes:
        action: what is done.
        queue: number of its queue.
        turn: its position in the queue, from 1.
        thread: number of the host thread that does or issues it; 0 is the caller.
        at: its position among what that thread does, from 1: the number on the thread's timeline.
        waits: numbers of steps that have to be waited for.
        signal: whether some thread waits for it, or for its being issued.
        event: whether its stream records an event after it.
        frees: variables that nobody reads any more.
    """

    action: Action
    queue: int
    turn: int
    thread: int
    at: int
    waits: tuple[int, ...] = ()
    signal: bool = False
    event: bool = False
    frees: tuple[int, ...] = ()


def kept_by_host(home: ComputeDevice | None) -> bool:
    """Whether the host alone keeps a variable with this home: an array in main memory, or the handle of a copy."""
    return home is None or home is HOST.device


def by_handle(action: Action, other: Action) -> bool:
    """Whether an action waits for a copy by the handle that it reads, so that no event is needed."""
    return other.kind is Kind.DOWNLOAD and not {*action.reads}.isdisjoint(other.results)
