"""Carrying a plan out: the caller issues streams and runs ``cpu:0``, every other pool gets its steps in one piece.

A hand-over to another thread costs as much as thousands of small steps: there is one for each pool and run. Submission
of a run to all its pools is one critical section, in which nothing waits. Pools thus see runs in the same order, and
two callers whose plans use the same pools crosswise never wait for each other.

The first failure cancels what has not begun. It is raised when all threads have left the run and its streams have come
to rest; what failed after it is told in its notes. A cancelled wait is never the first failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, Protocol

from tenferro_runtime.executing._plan import ExecutionPlan
from tenferro_runtime.executing._queue import Queue
from tenferro_runtime.executing._step import kept_by_host
from tenferro_runtime.executing._text import Part, parts, release
from tenferro_runtime.executing._timeline import CancelledError, TimelineSignal
from tenferro_tensor import ComputeDevice
from tenferro_tensor.backends import THREAD
from tenferro_tensor.device_runtimes import DeviceRuntime, RuntimeDevice, Stream
from tenferro_tensor_core.forks import new_lock

_submitting = new_lock()


def within() -> bool:
    """Whether the calling thread is a pool's, or carries out a part of a plan: it must not wait for other pools."""
    return THREAD.busy


class Execution(NamedTuple):
    """One run of a plan, while it goes on and afterwards.

    Attributes:
        plan: the plan.
        timelines: the timeline of each thread, by the name of its device. Its value is the number of the last step that
            the thread has done, or issued to a stream, as far as another thread waits for it; of a run that has
            succeeded, the number of all its steps.
    """

    plan: ExecutionPlan
    timelines: Mapping[str, TimelineSignal]


_watching: ContextVar[list[Execution] | None] = ContextVar("tenferro executions", default=None)


@contextmanager
def executions() -> Iterator[list[Execution]]:
    """A list of the runs of execution plans that begin inside, in this thread, in order.

    Another thread may read or wait for their timelines while they go on.

    >>> import tenferro_runtime as tr
    >>> from tenferro_cpu import CpuPool
    >>> def f(x):
    ...     with tr.compute_device("cpu:2"):
    ...         y = x + x
    ...     return y * x
    >>> with CpuPool(index=2), executions() as seen:
    ...     y = tr.compile(f)(tr.ones(3))
    >>> [run] = seen
    >>> {name: timeline.value for name, timeline in run.timelines.items()}
    {'cpu:0': 1, 'cpu:2': 1}
    """
    found: list[Execution] = []
    token = _watching.set(found)
    try:
        yield found
    finally:
        _watching.reset(token)


class Accelerator(NamedTuple):
    """A device as its runtime has it, and the runtime."""

    runtime: DeviceRuntime
    device: RuntimeDevice


class Machine(Protocol):
    """What plans run on."""

    def post(self, pool: ComputeDevice, run: Callable[[], None]) -> None:
        """Have the thread of a pool call `run`, after what it was given before; does not wait."""

    def accelerator(self, device: ComputeDevice) -> Accelerator:
        """The accelerator of a name."""

    def stream(self, queue: Queue) -> Stream:
        """The stream of a queue for work of the calling thread."""


class Executor:
    """A plan, ready to run any number of times, from any number of threads.

    Args:
        plan: the plan.
        machine: what it runs on.
        wrap: puts around what the caller does what the host needs, such as a memory pool.
    """

    __slots__ = ("_blank", "_inputs", "_outputs", "_parts", "_slots", "machine", "plan")

    def __init__(self, plan: ExecutionPlan, machine: Machine, wrap: Callable[[Part], Part] = lambda part: part) -> None:
        self.plan, self.machine = plan, machine
        names = [*plan.inputs, *plan.constants, *[v for step in plan.steps for v in step.action.results]]
        self._slots = {v: n for n, v in enumerate(dict.fromkeys(names))}
        self._blank: list[Any] = [None] * len(self._slots)
        for v, raw in plan.constants.items():
            self._blank[self._slots[v]] = raw
        self._inputs = tuple([self._slots[v] for v in plan.inputs])
        self._outputs = tuple([self._slots[v] for v in plan.outputs])
        rows = [parts(plan, t, self._slots) for t in range(len(plan.threads))]
        self._parts = [[wrap(part) for part in rows[0]], *rows[1:]]

    def run(self, *raws: Any) -> tuple[Any, ...]:
        """Raw outputs for raw inputs. Those on accelerators may still be on their way, in the order of their streams.

        Raises:
            BaseException: the first failure.
        """
        run = _Run(self.plan, self.machine, self._blank)
        watching = _watching.get()
        if watching is not None:
            names = [str(queue.device) for queue in self.plan.threads]
            watching.append(Execution(self.plan, dict(zip(names, run.timelines, strict=True))))
        for slot, raw in zip(self._inputs, raws, strict=True):
            run.values[slot] = raw
        try:
            run.submit(self._parts[1:])
            run.steps(self._parts[0])
        except BaseException as error:
            run.fail(error)
        run.join()
        if run.first is not None:
            run.clear(self._slots)
            try:
                raise run.first
            finally:
                run.first = None  # its traceback holds the run: no circle keeps the caller's values alive
        if watching is not None:
            for thread, timeline in enumerate(run.timelines):
                timeline.signal(len(self.plan.of_thread(thread)))
        outputs = tuple([run.values[slot] for slot in self._outputs])
        run.values.clear()  # a pool may hold the run until it gets the next
        return outputs


class _Run:
    """State of one run."""

    __slots__ = (
        "_lock", "accelerators", "events", "first", "gates", "machine", "plan", "stopped", "streams", "timelines",
        "values",
    )  # fmt: skip

    def __init__(self, plan: ExecutionPlan, machine: Machine, blank: list[Any]) -> None:
        self.plan, self.machine = plan, machine
        self.values = list(blank)
        self.events: list[Any] = [None] * len(plan.steps)
        self.timelines = tuple([TimelineSignal() for _ in plan.threads])
        self.streams = [None if q.host else machine.stream(q) for q in plan.queues]
        self.accelerators = [None if q.host else machine.accelerator(q.device) for q in plan.queues]
        self.stopped: list[bool] = []
        self.gates: list[TimelineSignal] = []
        self.first: BaseException | None = None
        self._lock = new_lock()

    def submit(self, rows: list[list[Part]]) -> None:
        """Give each pool its steps."""
        jobs = []
        for row in rows:
            gate = TimelineSignal()
            jobs.append((gate, partial(self._part, row, gate)))
        if jobs:
            with _submitting:
                for queue, (gate, job) in zip(self.plan.threads[1:], jobs, strict=True):
                    self.machine.post(queue.device, job)
                    self.gates.append(gate)

    def join(self) -> None:
        """Wait until every pool has left the run, whatever happens meanwhile."""
        for gate in self.gates:
            while True:
                try:
                    gate.wait(1)
                except BaseException as error:  # an interrupt; the others still use what belongs to the run
                    self.fail(error)
                else:
                    break

    def fail(self, error: BaseException) -> None:
        """Cancel what has not begun; the first failure is the cause."""
        with self._lock:
            if self.first is None:
                self.first = error
            elif not _same(error, self.first):
                self.first.add_note(f"after it, another step failed: {type(error).__name__}: {error}")
        self.stopped.append(True)
        for timeline in self.timelines:
            timeline.fail(CancelledError("another step of the plan has failed"))

    def clear(self, slots: dict[int, int]) -> None:
        """After a failure: let streams come to rest, and free what was made. What fails meanwhile comes after it."""
        for stream in self.streams:
            if stream is not None:
                try:
                    stream.synchronize()
                except Exception as error:
                    self.fail(error)
        for n, queue in enumerate(self.plan.queues):
            if queue.role == "compute":
                left = [v for v, home in self.plan.homes.items() if home is queue.device and not kept_by_host(home)]
                own = [slots[v] for v in left if v in slots and (v not in self.plan.kept or v in self.plan.made)]
                try:
                    release(self.streams[n], self.values, tuple([s for s in own if self.values[s] is not None]))
                except Exception as error:  # a device that is lost takes nothing back
                    self.fail(error)
        # Tracebacks hold on to the run; nothing of the caller's may stay with it.
        self.values.clear()
        for timeline in self.timelines:
            timeline.error = None

    def steps(self, row: list[Part]) -> None:
        """Do what one thread has to do."""
        before, THREAD.busy = THREAD.busy, True
        try:
            for part in row:
                part(self.values, self.events, self.timelines, self.streams, self.accelerators, self.stopped)
        except BaseException as error:
            if not (self.stopped and isinstance(error, CancelledError)):
                self.fail(error)
        finally:
            THREAD.busy = before

    def _part(self, row: list[Part], gate: TimelineSignal) -> None:
        try:
            self.steps(row)
        finally:
            gate.signal(1)


def _same(a: BaseException, b: BaseException) -> bool:
    """Whether two errors tell of one failure: one may be raised wherever somebody waits for its stream."""
    return a is b or (a.__cause__ is not None and a.__cause__ is b.__cause__)
