"""Runs plans: the caller issues streams and runs ``cpu:0``; every other pool receives its steps in one piece.

A hand-over to another thread costs as much as thousands of small steps, so each pool receives one per run. A run is
submitted to all its pools in one critical section that does not block. All pools therefore see runs in the same order,
and callers whose plans use the same pools cannot deadlock.

The first failure cancels all steps that have not started. It is raised when all threads have left the run and its
streams are idle; later failures are added as notes. A cancelled wait is never the first failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, Protocol

from tenferro_runtime.placement._plan import ExecutionPlan
from tenferro_runtime.placement._queue import Queue
from tenferro_runtime.placement._step import kept_by_host
from tenferro_runtime.placement._text import Part, parts, release
from tenferro_runtime.placement._timeline import CancelledError, TimelineSignal
from tenferro_tensor import ComputeDevice
from tenferro_tensor.backends import THREAD
from tenferro_tensor.device_runtimes import DeviceRuntime, RuntimeDevice, Stream
from tenferro_tensor_core.forks import new_lock

_submitting = new_lock()


def within() -> bool:
    """Whether the calling thread belongs to a pool or runs a part of a plan, and must not wait for other pools."""
    return THREAD.busy


class Execution(NamedTuple):
    """One run of a plan, during and after it.

    Attributes:
        plan: the plan.
        timelines: the timeline of each thread, by the name of its device. Its value is the number of the last step that
            the thread has completed or issued, counting steps that another thread waits for; after a successful run it
            is the number of all steps of the thread.
    """

    plan: ExecutionPlan
    timelines: Mapping[str, TimelineSignal]


_watching: ContextVar[list[Execution] | None] = ContextVar("tenferro executions", default=None)


@contextmanager
def executions() -> Iterator[list[Execution]]:
    """Record the runs of execution plans that start in this scope and thread.

    Other threads may read their timelines, or wait for them, during the runs.

    Returns:
        A context manager for the list of runs, in order.

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
    """A device of a device runtime, and the runtime."""

    runtime: DeviceRuntime
    device: RuntimeDevice


class Machine(Protocol):
    """The interface of the machine that plans run on."""

    def post(self, pool: ComputeDevice, run: Callable[[], None]) -> None:
        """Queue `run` for the thread of a pool; does not block."""

    def accelerator(self, device: ComputeDevice) -> Accelerator:
        """The accelerator with a given name."""

    def stream(self, queue: Queue) -> Stream:
        """The stream of a queue for work of the calling thread."""


class Executor:
    """A plan, ready to run any number of times from any number of threads.

    Args:
        plan: the plan.
        machine: the machine that it runs on.
        wrap: wraps the steps of the calling thread, for instance in a memory pool.
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
        """Run the plan on raw inputs; outputs on accelerators may still be computed, in stream order.

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
                run.first = (
                    None  # the traceback references the run; this avoids a cycle that keeps the caller's values alive
                )
        if watching is not None:
            for thread, timeline in enumerate(run.timelines):
                timeline.signal(len(self.plan.of_thread(thread)))
        outputs = tuple([run.values[slot] for slot in self._outputs])
        run.values.clear()  # a pool may reference the run until it receives the next one
        return outputs


class _Run:
    """The state of one run."""

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
        """Submit its steps to each pool."""
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
        """Wait until every pool has left the run, even if an interrupt arrives."""
        for gate in self.gates:
            while True:
                try:
                    gate.wait(1)
                except BaseException as error:  # an interrupt; other threads still use the run
                    self.fail(error)
                else:
                    break

    def fail(self, error: BaseException) -> None:
        """Cancel all steps that have not started; the first failure is the cause."""
        with self._lock:
            if self.first is None:
                self.first = error
            elif not _same(error, self.first):
                self.first.add_note(f"after it, another step failed: {type(error).__name__}: {error}")
        self.stopped.append(True)
        for timeline in self.timelines:
            timeline.fail(CancelledError("another step of the plan has failed"))

    def clear(self, slots: dict[int, int]) -> None:
        """After a failure: wait for streams and free values; further failures become notes."""
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
                except Exception as error:  # a lost device cannot release memory
                    self.fail(error)
        # Tracebacks reference the run, which must not keep the caller's values alive.
        self.values.clear()
        for timeline in self.timelines:
            timeline.error = None

    def steps(self, row: list[Part]) -> None:
        """Run the steps of one thread."""
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
    """Whether two errors report the same failure, which may be raised by every wait for its stream."""
    return a is b or (a.__cause__ is not None and a.__cause__ is b.__cause__)
