"""Simulated streams: a worker thread each, which carries work out in order, and events between them."""

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from itertools import count
from queue import SimpleQueue
from typing import Any

import numpy as np

from simulated.clocks import Clock, Tracked, merge
from simulated.memory import Buffer, SimArray
from tenferro_tensor import AsynchronousError, Event, ForkedRuntimeError, Stream
from tenferro_tensor_core import UnsupportedError

_numbers = count()


class SimEvent(Event):
    """An event; one that no stream has recorded is done at once, as on real hardware, and the checker says so."""

    def __init__(self, runtime: Any, *, timing: bool = False) -> None:
        self.runtime, self.timing = runtime, timing
        self.clock: Clock | None = None
        self.error: tuple[str, BaseException] | None = None
        self.at = 0.0
        self._passed = threading.Event()

    def pass_(self, error: tuple[str, BaseException] | None) -> None:
        self.error, self.at = error, time.perf_counter()
        self._passed.set()

    def settle(self) -> None:
        """Wait without the clocks of the checker: for streams."""
        if self.clock is not None:
            self._passed.wait()

    @property
    def done(self) -> bool:
        if self.clock is None or not self._passed.is_set():
            return self.clock is None
        self.runtime.checker.observe(self.clock)
        return True

    def synchronize(self) -> None:
        self.runtime.require_process()
        if self.clock is None:
            with self.runtime.checker.lock:
                self.runtime.checker.note("event never recorded", "the host waits for an event that no stream records")
            return
        self._passed.wait()
        self.runtime.checker.observe(self.clock)
        self.raise_error()

    def raise_error(self) -> None:
        if self.error is not None:
            what, cause = self.error
            raise AsynchronousError(f"{what} failed: {type(cause).__name__}: {cause}", what=what) from cause

    def elapsed(self, earlier: Event) -> float:
        if not isinstance(earlier, SimEvent) or not (self.timing and earlier.timing):
            raise UnsupportedError("time is measured between two events of record(timing=True); one of these is not")
        if not (self.done and earlier.done):
            raise UnsupportedError("time is measured between events that are done; synchronize() with the later one")
        return self.at - earlier.at


class Queue:
    """What a stream and its thread share; the thread ends when nobody holds the stream any more."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks: SimpleQueue[tuple[str, Callable[[], None], float, Exception | None] | None] = SimpleQueue()
        self.error: tuple[str, BaseException] | None = None
        self.thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, what: str, run: Callable[[], None], delay: float = 0.0, fault: Exception | None = None) -> None:
        with self._lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self.thread.start()
            self.tasks.put((what, run, delay, fault))

    def close(self) -> None:
        with self._lock:
            if self.thread is not None:
                self.tasks.put(None)

    def _work(self) -> None:
        while True:
            task = self.tasks.get()
            if task is None:
                return
            what, run, delay, fault = task
            if delay:
                time.sleep(delay)
            try:
                if fault is not None and self.error is None:
                    raise fault
                with np.errstate(all="ignore"):
                    run()
            except BaseException as error:
                self.error = self.error or (f"{what} on {self.name}", error)
            task = run = fault = None  # an idle thread keeps no values alive


class SimStream(Stream):
    """A stream. Errors stick: after one, work is dropped, and every wait for the stream reports the first."""

    def __init__(self, device: Any, priority: int = 0, name: str | None = None) -> None:
        self.device, self.priority, self.runtime = device, priority, device.runtime
        self.actor = f"{device.id}/{name or next(_numbers)}"
        self.clock: Clock = {}
        self.queue = Queue(self.actor)
        weakref.finalize(self, self.queue.close)

    def issue(
        self,
        what: str,
        run: Callable[[], None],
        reads: Sequence[Tracked] = (),
        writes: Sequence[Tracked] = (),
        *,
        kind: str = "kernel",
    ) -> None:
        """Issue any work on memory, checked now and run later.

        Args:
            what: it, in words.
            run: does it, in the stream's thread.
            reads: memory that it reads.
            writes: memory that it writes.
            kind: ``"kernel"`` or ``"transfer"``, for faults.
        """
        runtime = self.runtime
        runtime.require_process()
        with runtime.checker.lock:
            runtime.checker.step(self.actor, self.clock)
            for memory in reads:
                runtime.checker.read(memory, self.actor, self.clock, what)
            for memory in writes:
                runtime.checker.write(memory, self.actor, self.clock, what)
            runtime.issued[kind] += 1
            fault, delay = runtime.faults.draw(kind), runtime.faults.delay()
            queue = self.queue
            self.queue.put(what, lambda: None if queue.error else run(), delay, fault)

    def compute(
        self, what: str, run: Callable[..., Any], operands: Sequence[Any], shapes: Sequence[tuple[Any, Any]]
    ) -> tuple[SimArray, ...]:
        """Issue a function of NumPy arrays.

        Args:
            what: it, in words.
            run: takes the operands, arrays of devices as NumPy arrays.
            operands: raw values of this stream's device, and whatever else `run` takes.
            shapes: shape and dtype of each result.
        """
        given = [operand.buffer if isinstance(operand, SimArray) else None for operand in operands]
        fixed = [None if isinstance(operand, SimArray) else operand for operand in operands]
        results = tuple([self.device.allocate(shape, dtype, self) for shape, dtype in shapes])  # type: ignore[attr-defined]
        goals = [result.buffer for result in results]

        def task() -> None:
            out = run(*[f if b is None else _readable(b) for f, b in zip(fixed, given)])
            for goal, value in zip(goals, out if isinstance(out, (tuple, list)) and len(goals) != 1 else (out,)):
                _store(goal, value, what)

        self.issue(what, task, [b for b in given if b is not None], goals)
        return results

    def record(self, *, timing: bool = False) -> SimEvent:
        self.runtime.require_process()
        event, queue = SimEvent(self.runtime, timing=timing), self.queue
        with self.runtime.checker.lock:
            self.runtime.checker.step(self.actor, self.clock)
            event.clock = dict(self.clock)
            queue.put("event", lambda: event.pass_(queue.error))
        return event

    def wait(self, event: Event) -> None:
        self.runtime.require_process()
        assert isinstance(event, SimEvent)
        with self.runtime.checker.lock:
            self.runtime.checker.step(self.actor, self.clock)
            if event.clock is None:
                self.runtime.checker.note("event never recorded", f"{self.actor} waits for an event nobody records")
                return
            merge(self.clock, event.clock)
            queue = self.queue

            def settle() -> None:
                event.settle()
                queue.error = queue.error or event.error

            queue.put("wait", settle)

    def release(self, raw: Any) -> None:
        buffer: Buffer = raw.buffer
        with self.runtime.checker.lock:
            self.runtime.checker.step(self.actor, self.clock)
            if buffer.freed is not None:
                return
            self.runtime.checker.free(buffer, self.clock, self.actor)
            buffer.give_back()

            def poison() -> None:
                buffer.data.reshape(-1).view(np.uint8)[...] = 0xEE

            # Whoever reads the memory in spite of the checker gets nonsense.
            self.queue.put("release", poison)

    def synchronize(self) -> None:
        self.record().synchronize()

    def __repr__(self) -> str:
        return f"<SimStream {self.actor}>"


def _readable(buffer: Buffer) -> Any:
    view = buffer.data.view()
    view.flags.writeable = False
    return view if view.ndim else view[()]


def _store(goal: Buffer, value: Any, what: str) -> None:
    seen = np.asarray(value)
    if (seen.shape, seen.dtype) != (goal.data.shape, goal.data.dtype):
        raise TypeError(
            f"{what} returned {seen.dtype}{list(seen.shape)} in the place of {goal.data.dtype}{list(goal.data.shape)}"
        )
    goal.data[...] = seen


def require_process(made_in: int) -> None:
    """Raise in a child that was forked after the runtime was made."""
    if os.getpid() != made_in:
        raise ForkedRuntimeError(
            "the simulated runtime was made before this process was forked; start workers with 'spawn'", kind="sim"
        )
