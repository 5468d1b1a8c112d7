"""`Step`: one step of an execution plan."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.placement._moves import Action, Kind
from tenferro_tensor import HOST, ComputeDevice

Clock = list[int]
"""Vector clock: the progress of each queue that is certain."""


@dataclass(slots=True, eq=False)
class Step:
    """An action with its place in the plan; immutable once the plan is complete.

    Attributes:
        action: the action.
        queue: number of its queue.
        turn: its position in the queue, from 1.
        thread: number of the host thread that runs or issues it; 0 is the caller.
        at: its position among the steps of that thread, from 1: the number on the thread's timeline.
        waits: numbers of the steps that it waits for.
        signal: whether another thread waits for its completion or issue.
        event: whether its stream records an event after it.
        frees: variables to release after it.
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
    """Whether a variable with this home is held by the host only: an array in main memory, or the handle of a copy."""
    return home is None or home is HOST.device


def by_handle(action: Action, other: Action) -> bool:
    """Whether an action waits for a copy through the handle that it reads, so that no event is needed."""
    return other.kind is Kind.DOWNLOAD and not {*action.reads}.isdisjoint(other.results)
