"""How work on one queue waits for work on another, and how data are transferred; used by plans and `sync_strategy`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tenferro_runtime.placement._queue import CALLER, Queue
from tenferro_tensor import HOST, ComputeDevice


class Wait(Enum):
    """How a queue waits for work on another one."""

    IN_ORDER = "in order"
    """No wait: one thread runs or issues both in order."""
    EVENT = "event"
    """A stream waits for an event of the other; no thread waits."""
    SYNCHRONIZE = "event in the thread"
    """The thread that issued the work waits for its event."""
    TIMELINE = "timeline"
    """A thread waits until the timeline of the other reaches a number."""
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
    """How data move from one memory to another."""

    SHARED = "shared memory"
    """Nothing moves."""
    UPLOAD = "upload"
    DOWNLOAD = "download"
    PEER = "peer copy"
    """Directly from accelerator to accelerator."""
    STAGED = "through main memory"
    """A download, and an upload that waits for its event; no thread waits."""


class SyncStrategy(NamedTuple):
    """How work on one queue follows work on another.

    Attributes:
        wait: how the order is enforced.
        route: how data are transferred.
    """

    wait: Wait
    route: Route

    def __str__(self) -> str:
        return f"{self.wait.value}, {self.route.value}"


Reaches = Callable[[ComputeDevice, ComputeDevice], bool]


def wait_between(first: Queue, then: Queue) -> Wait:
    """How work on the second queue waits for work on the first; the caller is the thread that issues to all streams."""
    if first == then:
        return Wait.IN_ORDER
    if first.host:
        return Wait.IN_ORDER if first == CALLER and not then.host else Wait.TIMELINE
    if not then.host:
        return Wait.EVENT
    return Wait.SYNCHRONIZE if then == CALLER else Wait.TIMELINE_THEN_SYNCHRONIZE


def route_between(source: ComputeDevice, target: ComputeDevice, reaches: Reaches) -> Route:
    """How data move from the memory of one device to that of another.

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
