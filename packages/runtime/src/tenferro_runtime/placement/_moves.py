"""From tasks to actions: every task gets its queue, and every transfer becomes copies on copy queues.

A copy between host and accelerator is issued on the copy queue of the accelerator. A download has a second part: the
host thread that first reads the value takes it from its pending handle. Data move directly between two accelerators
with peer access, and otherwise through main memory, without blocking a thread. An existing copy in the target memory is
reused. Pools share main memory, so that nothing moves between them.
"""

from __future__ import annotations

from enum import Enum
from itertools import count
from typing import Final, NamedTuple

from tenferro_runtime.ir._program import Operand
from tenferro_runtime.placement._queue import CALLER, Queue
from tenferro_runtime.placement._sync import Reaches, Route, route_between
from tenferro_runtime.placement._tasks import Task, Work
from tenferro_tensor import HOST, ComputeDevice, MemorySpace


class Kind(Enum):
    """The kinds of actions."""

    CALL = "call"
    LAUNCH = "launch"
    UPLOAD = "upload"
    DOWNLOAD = "download"
    ARRIVE = "arrive"
    PEER = "peer copy"
    BEGIN = "begin"
    END = "end"


STREAMS: Final = ("compute", "compute 2")
"""Compute streams of an accelerator; the first is that of the caller."""


class Action(NamedTuple):
    """One step of a plan, before its waits are known.

    Attributes:
        kind: what it does.
        queue: where.
        operands: variables and literals.
        results: variables.
        task: the task that it comes from; ``None`` at the beginning and the end of a stream.
    """

    kind: Kind
    queue: Queue
    operands: tuple[Operand, ...]
    results: tuple[int, ...]
    task: Task | None

    @property
    def reads(self) -> tuple[int, ...]:
        """The operands that are variables."""
        return tuple([v for v in self.operands if v.__class__ is int])


class Moved(NamedTuple):
    """Work as actions.

    Attributes:
        actions: the actions, in an order in which they can be done.
        homes: device in whose memory a variable is; ``cpu:0`` for all pools, ``None`` for handles of copies.
        alias: variables that equal another one, because nothing had to move.
    """

    actions: tuple[Action, ...]
    homes: dict[int, ComputeDevice | None]
    alias: dict[int, int]


def moved(work: Work, reaches: Reaches) -> Moved:
    """The actions of some work.

    Args:
        work: the work.
        reaches: whether the memory of the second accelerator can be filled from that of the first without the host.
    """
    return _Mover(work, reaches).run()


class _Mover:
    def __init__(self, work: Work, reaches: Reaches) -> None:
        self.work, self.reaches = work, reaches
        self.actions: list[Action] = []
        self.alias: dict[int, int] = {}
        self.homes: dict[int, ComputeDevice | None] = {v: work.space(v).default_device for v in work.specs}
        self._fresh = count(max(work.specs, default=-1) + 1).__next__
        self._origin: dict[int, int] = {}
        self._copies: dict[tuple[int, MemorySpace], int] = {}
        """The variable in each memory that holds the elements, by the variable that was computed."""
        self._handles: dict[int, int] = {}
        self._made: dict[int, Queue] = {}
        self._last: dict[Queue, set[int]] = {}
        self._issued: dict[Queue, int] = {}

    def run(self) -> Moved:
        for task in self.work.tasks:
            operands = tuple([self.alias.get(v, v) if v.__class__ is int else v for v in task.operands])
            if task.run is None:
                assert operands[0].__class__ is int, "a transfer moves a variable"
                self._transfer(task, operands[0])
            else:
                if task.device.kind == HOST.device.kind:
                    kind, queue = Kind.CALL, Queue(task.device, "host")
                else:
                    kind, queue = Kind.LAUNCH, self._stream(task.device, operands, task.results)
                self.actions.append(Action(kind, queue, operands, task.results, task))
        return Moved(self._received(), self.homes, self.alias)

    def _stream(self, device: ComputeDevice, operands: tuple[Operand, ...], results: tuple[int, ...]) -> Queue:
        """The stream of a call: one that ends with one of its operands, else that of an operand.

        A call whose operands no stream of the device has computed uses the stream with fewer actions, so that
        independent branches run in parallel and no other call waits for another stream.
        """
        reads = [v for v in operands if v.__class__ is int]
        made = [self._made[v] for v in reads if v in self._made and self._made[v].device is device]
        ends = [queue for queue in made if not self._last[queue].isdisjoint(reads)]
        streams = [Queue(device, role) for role in STREAMS]
        queue = (ends or made or sorted(streams, key=lambda q: self._issued.get(q, 0)))[0]
        self._last[queue] = {*results}
        self._issued[queue] = self._issued.get(queue, 0) + 1
        self._made.update(dict.fromkeys(results, queue))
        return queue

    def _transfer(self, task: Task, v: int) -> None:
        (result,) = task.results
        source, target = self._device(v), self._device(result)
        origin = self._origin.get(v, v)
        known = self._copies.get((origin, target.memory_space))
        if source is target:
            known = v
        elif origin != v and self._device(origin) is target:
            known = origin
        if known is not None:
            self.alias[result] = known
            return
        self._origin[result] = origin
        self._copies[origin, target.memory_space] = result
        match route_between(source, target, self.reaches):
            case Route.UPLOAD:
                self._act(Kind.UPLOAD, target, v, result, task)
            case Route.DOWNLOAD:
                self._download(v, result, task)
            case Route.PEER:
                self._act(Kind.PEER, target, v, result, task)
            case Route.STAGED:
                host = self._device(origin) is HOST.device
                staged = origin if host else self._copies.get((origin, HOST.memory_space))
                self._act(Kind.UPLOAD, target, self._handle(v, task) if staged is None else staged, result, task)
            case Route.SHARED:
                raise AssertionError("what moves nowhere is known")

    def _download(self, v: int, result: int, task: Task) -> None:
        self.actions.append(Action(Kind.ARRIVE, CALLER, (self._handle(v, task),), (result,), task))

    def _handle(self, v: int, task: Task) -> int:
        """The pending copy of a variable to main memory, shared by all readers."""
        origin = self._origin.get(v, v)
        known = self._handles.get(origin)
        if known is None:
            known = self._handles[origin] = self._fresh()
            self.homes[known] = None
            self._act(Kind.DOWNLOAD, self._device(v), v, known, task)
        return known

    def _act(self, kind: Kind, at: ComputeDevice, v: int, result: int, task: Task) -> None:
        self.actions.append(Action(kind, Queue(at, "copy"), (v,), (result,), task))

    def _device(self, v: int) -> ComputeDevice:
        home = self.homes[v]
        assert home is not None, "handles of copies are not moved"
        return home

    def _received(self) -> tuple[Action, ...]:
        """Let the pool that first reads a downloaded value receive it."""
        first: dict[int, Queue] = {}
        for action in self.actions:
            for v in action.reads:
                first.setdefault(v, action.queue)
        return tuple(
            [
                a._replace(queue=first[a.results[0]])
                if a.kind is Kind.ARRIVE and a.results[0] in first and first[a.results[0]].host
                else a
                for a in self.actions
            ]
        )
