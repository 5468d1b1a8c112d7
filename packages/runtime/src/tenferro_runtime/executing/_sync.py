"""How work waits for work, and data follow it: one answer for plans and for those who ask.

Plans take what their steps wait with, and the way of their transfers, from here.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tenferro_runtime.executing._queue import CALLER, Queue
from tenferro_tensor import HOST, ComputeDevice


class Wait(Enum):
    """How a queue waits for work of another one."""

    IN_ORDER = "in order"
    """Nothing waits: one thread does or issues both, one after the other."""
    EVENT = "event"
    """A stream waits for an event of the other; no thread waits."""
    SYNCHRONIZE = "event in the thread"
    """The thread that issued the work waits for its event."""
    TIMELINE = "timeline"
    """A thread waits until the timeline of the other has reached a number."""
    TIMELINE_THEN_SYNCHRONIZE = "timeline, then event in the thread"
    """A thread waits until the timeline of the issuing thread says that the work is issued, then for its event."""

    @property
    def by_timeline(self) -> bool:
        """Whether a timeline is waited for."""
        return self in (Wait.TIMELINE, Wait.TIMELINE_THEN_SYNCHRONIZE)

    @property
    def by_event(self) -> bool:
        """Whether an event is recorded."""
        return self not in (Wait.IN_ORDER, Wait.TIMELINE)


class Route(Enum):
    """The way of data from one memory to another."""

    SHARED = "shared memory"
    """Nothing moves."""
    UPLOAD = "upload"
    DOWNLOAD = "download"
    PEER = "peer copy"
    """From accelerator to accelerator."""
    STAGED = "through main memory"
    """A download and an upload that waits for its event; no thread waits."""


class SyncStrategy(NamedTuple):
    """How work on one queue follows work on another.

    Attributes:
        wait: how the order is made.
        route: how data get there.
    """

    wait: Wait
    route: Route

    def __str__(self) -> str:
        return f"{self.wait.value}, {self.route.value}"


Reaches = Callable[[ComputeDevice, ComputeDevice], bool]


def wait_between(first: Queue, then: Queue) -> Wait:
    """How work of the second queue waits for work of the first. The caller is the thread that issues all streams."""
    if first == then:
        return Wait.IN_ORDER
    if first.host:
        return Wait.IN_ORDER if first == CALLER and not then.host else Wait.TIMELINE
    if not then.host:
        return Wait.EVENT
    return Wait.SYNCHRONIZE if then == CALLER else Wait.TIMELINE_THEN_SYNCHRONIZE


def route_between(source: ComputeDevice, target: ComputeDevice, reaches: Reaches) -> Route:
    """The way of data from the memory of a device to that of another one.

    Args:
        source: where the data are.
        target: where they go.
        reaches: whether the memory of the second accelerator can be filled from that of the first without the host.
    """
    host = HOST.device.kind
    if source is target or source.kind == target.kind == host:
        return Route.SHARED
    if source.kind == host:
        return Route.UPLOAD
    if target.kind == host:
        return Route.DOWNLOAD
    return Route.PEER if reaches(source, target) else Route.STAGED
