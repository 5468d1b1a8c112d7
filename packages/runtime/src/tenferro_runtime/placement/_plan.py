"""`ExecutionPlan`: actions on queues with the minimal waits between them, found in one pass with vector clocks.

The clock of a step states the progress of every queue that is certain when the step is done. A dependence that the
clock covers needs no wait. Visiting the dependences of a step from the latest to the first yields the transitive
reduction, because each wait also covers everything that it follows.

The calling thread is the queue of ``cpu:0``, and the only thread that issues work to streams: an event is always
recorded before any wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tenferro_runtime.placement._lifetimes import Lifetimes
from tenferro_runtime.placement._moves import Action, Kind, Moved, moved
from tenferro_runtime.placement._order import ordered
from tenferro_runtime.placement._placement import Placement
from tenferro_runtime.placement._queue import CALLER, Queue
from tenferro_runtime.placement._step import Clock, Step, by_handle, kept_by_host
from tenferro_runtime.placement._sync import Reaches, wait_between
from tenferro_runtime.placement._tasks import Work
from tenferro_runtime.reports._table import Report
from tenferro_tensor import ComputeDevice, Spec
from tenferro_tensor.markup import aligned


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExecutionPlan(Report):
    """The steps of a program on queues, with the waits between them; immutable, prints as a table.

    Attributes:
        queues: threads and streams; the first is the caller.
        threads: the queues that are threads of the host.
        steps: all steps, in an order that respects every wait.
        inputs: variables of the inputs.
        constants: raw arrays by variable.
        outputs: variables of the outputs.
        homes: device in whose memory a variable is; ``None`` for handles of copies.
        specs: specs of the variables that the program has.
        kept: variables on accelerators that are not released, because they may alias inputs, constants or outputs.
        made: those of them that share no memory with inputs or constants.
        edges: number of dependences between queues.
        placement: the placement, if the cost model placed the steps.
    """

    queues: tuple[Queue, ...]
    threads: tuple[Queue, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    constants: Mapping[int, Any]
    outputs: tuple[int, ...]
    homes: Mapping[int, ComputeDevice | None]
    specs: Mapping[int, Spec]
    kept: frozenset[int]
    made: frozenset[int]
    edges: int
    placement: Placement | None = None

    def of_thread(self, thread: int) -> tuple[int, ...]:
        """The steps that a thread runs or issues.

        Args:
            thread: number of the thread.

        Returns:
            Numbers of the steps, in order.
        """
        return tuple([i for i, step in enumerate(self.steps) if step.thread == thread])

    @property
    def waits(self) -> int:
        """Number of waits."""
        return sum([len(step.waits) for step in self.steps])

    def __str__(self) -> str:
        rows = [("step", "queue", "action", "waits for", "frees", "line")]
        for i, step in enumerate(self.steps):
            task = step.action.task
            kind = step.action.kind.value
            name = kind if task is None or task.run is None else f"{kind} {task.title}"
            waits = ", ".join(map(str, sorted(step.waits)))
            frees = ", ".join([f"v{v}" for v in step.frees])
            line = "" if task is None or task.equation is None else task.equation.where
            rows.append((str(i), str(self.queues[step.queue]), name, waits, frees, line))
        told = [] if self.placement is None else [self.placement.why]
        return "\n".join([aligned(rows), f"{self.waits} waits for {self.edges} dependencies between queues", *told])

    @property
    def _heading(self) -> str:
        return repr(self)[1:-1]

    def __repr__(self) -> str:
        return (
            f"<ExecutionPlan: {len(self.steps)} steps on {', '.join(map(str, self.queues))}; "
            f"{self.waits} waits for {self.edges} dependencies>"
        )


def plan_of(work: Work, reaches: Reaches = lambda source, target: False) -> ExecutionPlan:
    """The plan of a program's work.

    Args:
        work: the work.
        reaches: whether the memory of the second accelerator can be filled from that of the first without the host.
    """
    return _Planner(work, moved(work, reaches)).plan()


class _Planner:
    def __init__(self, work: Work, found: Moved) -> None:
        self.work, self.homes = work, found.homes
        self.outputs = tuple([found.alias.get(v, v) for v in work.outputs])
        actions = [*_beginnings(work, found), *found.actions]
        devices = dict.fromkeys([a.queue.device for a in actions if not a.queue.host])
        streams = [Queue(d, "compute") for d in devices] + [a.queue for a in actions if not a.queue.host]
        hosts = [CALLER, *[a.queue for a in actions if a.queue.host]]
        self.queues = tuple(dict.fromkeys([*hosts, *streams]))
        self.number = {queue: n for n, queue in enumerate(self.queues)}
        self.threads = tuple([q for q in self.queues if q.host])
        self.thread = {queue: n for n, queue in enumerate(self.threads)}
        self.actions = [actions[i] for i in ordered(actions, self.thread)]
        self.steps: list[Step] = []
        self.clocks: list[Clock] = []
        self.edges = 0
        self._done = [0] * len(self.queues)
        self._issued = [0] * len(self.threads)
        self._reached = [[0] * len(self.queues) for _ in self.queues]  # the first is also the clock of the caller
        self._maker: dict[int, int] = {}

    def plan(self) -> ExecutionPlan:
        for action in self.actions:
            self._add(action, [self._maker[v] for v in action.reads if v in self._maker])
        lives = Lifetimes(self.work, self.steps, self.clocks, self.homes, self.outputs)
        ends = {q.device: q for q in self.queues if q.role == "compute"}
        for device, queue in ends.items():
            frees, before, kept = lives.left(device)
            # All threads have left the run when it returns, so that the caller knows what any of them knows.
            kept = {i for i in kept if not any(self._knows(n, i) for n, q in enumerate(self.queues) if q.host)}
            self._add(Action(Kind.END, queue, (), (), None), before | kept)
            last = self.steps[-1]
            last.frees = tuple(frees)
            if not (last.waits or last.frees):
                self._drop()
        return ExecutionPlan(
            self.queues, self.threads, tuple(self.steps), self.work.inputs, self.work.constants, self.outputs,
            self.homes, self.work.specs, lives.kept, lives.made, self.edges,
        )  # fmt: skip

    def _add(self, action: Action, needed: Iterable[int]) -> None:
        """Append an action to its queue, with waits for the steps that it needs."""
        number, thread = self.number[action.queue], self.thread.get(action.queue, 0)
        self._done[number] += 1
        self._issued[thread] += 1
        step = Step(action, number, self._done[number], thread, self._issued[thread])
        known = self._reached[number]
        if not action.queue.host:
            known = list(map(max, known, self._reached[0]))
        step.waits = tuple(self._waits(step, known, sorted(set(needed), reverse=True)))
        known = self._after(known, step.waits)
        if not action.queue.host:
            # While it waits for a pool, the caller issues nothing, so that its later steps are ordered as well.
            pools = [d for d in step.waits if self.steps[d].action.queue.host]
            self._reached[0] = self._after(self._reached[0], pools)
        known[number] = step.turn
        self._reached[number] = known
        self._maker.update(dict.fromkeys(action.results, len(self.steps)))
        self.steps.append(step)
        self.clocks.append(known)

    def _waits(self, step: Step, known: Clock, needed: list[int]) -> Iterable[int]:
        """The needed steps that are not known to be done, latest first; marks them as waited for."""
        for d in needed:
            other = self.steps[d]
            self.edges += other.queue != step.queue
            if known[other.queue] >= other.turn:
                continue
            known = self._after(known, (d,))
            how = wait_between(other.action.queue, step.action.queue)
            other.event |= how.by_event and not by_handle(step.action, other.action)
            other.signal |= how.by_timeline
            yield d

    def _after(self, known: Clock, waits: Iterable[int]) -> Clock:
        for d in waits:
            known = list(map(max, known, self.clocks[d]))
        return list(known)

    def _knows(self, queue: int, i: int) -> bool:
        """Whether the end of a queue is ordered after a step."""
        return self._reached[queue][self.steps[i].queue] >= self.steps[i].turn

    def _drop(self) -> None:
        step = self.steps.pop()
        self.clocks.pop()
        self._done[step.queue] -= 1
        self._issued[step.thread] -= 1


def _beginnings(work: Work, found: Moved) -> list[Action]:
    """Values that are in the memory of an accelerator before the run is ordered on its compute stream."""
    given: dict[ComputeDevice, list[int]] = {}
    for v in (*work.inputs, *work.constants):
        home = found.homes[v]
        if home is not None and not kept_by_host(home):
            given.setdefault(home, []).append(v)
    return [Action(Kind.BEGIN, Queue(d, "compute"), (), tuple(vs), None) for d, vs in given.items()]
