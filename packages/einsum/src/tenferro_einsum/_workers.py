"""Parts of contractions on the workers of any `concurrent.futures.Executor`: threads, processes, Dask, MPI."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from tenferro_einsum._search import Progress, reporting, require_progress
from tenferro_einsum._task_programs import ProgramExecutor
from tenferro_runtime.extension import ArgumentError, TenferroError

Sent = tuple[Future[Any], Callable[[Any], list[Any]]]
"""The future of a task, and a function that converts its outcome to the task's results."""


class WorkerError(TenferroError, RuntimeError):
    """A part of a contraction failed on its workers more often than allowed."""


@dataclass(frozen=True)
class Workers:
    """The executor of parts of contractions, and its options.

    Attributes:
        make: returns the executor; called again if that one is broken.
        own: whether `make` creates a new executor each time, which is shut down at the end.
        tasks: maximum number of tasks for the slices or branches of one contraction.
        retries: maximum number of retries of a failed task.
        timeout: seconds without a finished task after which the executor counts as broken; ``None`` for no limit.
        progress: as for a search, with the number of finished tasks instead of the cost.
    """

    make: Callable[[], Executor]
    own: bool
    tasks: int
    retries: int
    timeout: float | None
    progress: bool | Progress


_ACTIVE: ContextVar[Workers | None] = ContextVar("tenferro_einsum_workers", default=None)


@contextmanager
def run_on(
    executor: Executor | Callable[[], Executor],
    *,
    tasks: int = 32,
    retries: int = 2,
    timeout: float | None = None,
    progress: bool | Progress = False,
) -> Iterator[None]:
    """Context manager: parts of contractions and of their gradients run on an executor.

    A contraction with a `memory_budget` runs its slices there. One without runs its large branches, disjoint parts of
    its tree; their results are returned, and the rest runs in this process. An exception in this process, from
    `progress` or by an interrupt, cancels the tasks that have not started.

    Args:
        executor: a `concurrent.futures.Executor`, such as a process pool, ``dask.distributed.Client().get_executor()``,
            ``mpi4py.futures.MPIPoolExecutor()`` or ``tenferro_xla.XlaWorkers()``, which runs programs; or a function
            that creates one, called again if the executor breaks or stops responding.
        tasks: maximum number of tasks for one contraction; each task receives its operands once.
        retries: maximum number of retries of a failed task.
        timeout: seconds without a finished task after which the workers count as lost; by default no limit.
        progress: ``True`` for a bar, or a function of the finished fraction and the number of finished tasks.

    Returns:
        A context manager.

    Raises:
        ArgumentError: `executor` is not an executor and does not create one, or another argument is out of range.
        WorkerError: a task failed more often than `retries` allows, or its executor is broken, unresponsive or shut
            down and cannot be created again; raised by the contraction.

    >>> import numpy as np
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from tenferro_einsum import einsum, run_on
    >>> x = np.ones((100, 100))
    >>> with ThreadPoolExecutor(2) as threads, run_on(threads):
    ...     float(einsum("ij,jk,kl,li->", x, x, x, x, memory_budget=100_000))
    100000000.0
    """
    if not (isinstance(tasks, Integral) and tasks >= 1 and isinstance(retries, Real) and retries >= 0):
        raise ArgumentError(
            f"run_on takes whole numbers, tasks of at least 1 and retries of at least 0, got {tasks!r} and {retries!r}"
        )
    if timeout is not None and not (isinstance(timeout, Real) and timeout > 0):
        raise ArgumentError(
            f"run_on takes timeout as a positive number of seconds, got {timeout!r}; None sets no limit"
        )
    require_progress("run_on", progress)
    own = not hasattr(executor, "submit")
    if own and not callable(executor):
        raise ArgumentError(f"run_on takes an Executor or a function that makes one, got a {type(executor).__name__}")
    make: Any = executor if own else lambda: executor
    seconds = None if timeout is None else float(timeout)
    token = _ACTIVE.set(Workers(make, own, tasks, retries, seconds, progress))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def each_task(work: Callable[..., list[Any]], job: Any, count: int, arrays: Sequence[Any]) -> Generator[Any]:
    """The results of ``work(job, numbers, arrays)`` for the numbers below `count`, in order.

    Without workers they run in this process, one by one.
    """
    workers = _ACTIVE.get()
    if workers is None or count < 2:
        for number in range(count):
            yield from job.run((number,), arrays)
        return
    tasks = min(workers.tasks, count)
    shares = [range(count * t // tasks, count * (t + 1) // tasks) for t in range(tasks)]

    send = lambda executor, t: _sent(executor, work, job, shares[t], arrays)
    names = [f"slice {s[0]}" if len(s) == 1 else f"slices {s[0]} to {s[-1]}" for s in shares]
    with closing(_results(workers, send, [f"{name} of {count}" for name in names])) as results:
        for found in results:
            yield from found


def each_job(
    work: Callable[..., list[Any]], workers: Workers, jobs: Sequence[tuple[Any, Sequence[Any]]]
) -> list[list[Any]]:
    """The results of ``work(job, (0,), arrays)`` for each job and its arrays, in order."""
    names = [f"branch {t} of {len(jobs)}" for t in range(len(jobs))]
    send = lambda executor, t: _sent(executor, work, jobs[t][0], range(1), jobs[t][1])
    with closing(_results(workers, send, names)) as results:
        return list(results)


def _sent(executor: Executor, work: Callable[..., list[Any]], job: Any, numbers: range, arrays: Sequence[Any]) -> Sent:
    if isinstance(executor, ProgramExecutor):
        task = job.task(numbers, arrays)
        return executor.submit_program(task.program, task.arrays), task.read
    mine, parts = job.sent(numbers, arrays)
    return executor.submit(work, mine, numbers, parts), list


def active() -> Workers | None:
    """The workers of the innermost `run_on`."""
    return _ACTIVE.get()


def _results(workers: Workers, send: Callable[[Executor, int], Sent], names: Sequence[str]) -> Generator[list[Any]]:
    run = _TaskRun(workers, send, names)
    try:
        with reporting(workers.progress) as tell:
            yield from run.results(tell)
    finally:
        run.close()


_POLL_INTERVAL = 0.5
"""Seconds between checks for interrupts while waiting."""


class _Silence(BrokenExecutor):
    """Raised if no task has finished within the timeout."""


class _TaskRun:
    """The tasks of one contraction: submits them, retries failures, and cancels the rest on errors.

    Args:
        workers: the executor and its options.
        send: submits the task with a given index.
        names: descriptions of the tasks, for errors.
    """

    def __init__(self, workers: Workers, send: Callable[[Executor, int], Sent], names: Sequence[str]) -> None:
        self.workers, self.send, self.names = workers, send, names
        self.executor = workers.make()
        self.pending: dict[Future[Any], int] = {}
        self.reads: dict[int, Callable[[Any], list[Any]]] = {}
        self.ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self.failures = [0] * len(names)

    def results(self, tell: Progress) -> Iterator[list[Any]]:
        done: dict[int, list[Any]] = {}
        following = finished = 0
        for t in range(len(self.names)):
            self._submit(t)
        while self.pending:
            try:
                future = self._next()
            except _Silence as silence:
                self._again(min(self.pending.values()), silence)
                continue
            if future not in self.pending:  # resubmitted, with all others of a broken executor
                continue
            t = self.pending.pop(future)
            cause = CancelledError("somebody cancelled it") if future.cancelled() else future.exception()
            if cause is not None:
                self._again(t, cause)
                continue
            done[t] = self.reads[t](future.result())
            finished += 1
            tell(finished / len(self.names), float(finished))
            while following in done:
                yield done.pop(following)
                following += 1

    def _next(self) -> Future[Any]:
        """The next finished future.

        Waits in short intervals, because an interrupt that arrives in another thread, or just before the wait, does
        not end it.
        """
        timeout = self.workers.timeout
        end = inf if timeout is None else monotonic() + timeout
        while True:
            left = end - monotonic()
            try:
                return self.ended.get(timeout=max(0.0, min(left, _POLL_INTERVAL)))
            except Empty:
                if left <= _POLL_INTERVAL:
                    raise _Silence(f"no task has ended for {timeout:g} seconds") from None

    def _submit(self, t: int) -> None:
        try:
            future, self.reads[t] = self.send(self.executor, t)
        except BrokenExecutor as cause:
            self._again(t, cause)
        except RuntimeError as cause:
            raise WorkerError(
                f"the executor refused task {t} of {len(self.names)}, {self.names[t]}: {cause}; leave the block of "
                "run_on before the executor is shut down",
                task=t,
            ) from cause
        else:
            if future in self.pending:
                raise WorkerError(
                    f"the executor returned the same future for two tasks, {self.names[self.pending[future]]} and "
                    f"{self.names[t]}; its submit must return a new one for each call",
                    task=t,
                )
            self.pending[future] = t
            future.add_done_callback(self.ended.put)  # unlike `wait`, also called for cancelled futures

    def _again(self, t: int, cause: BaseException) -> None:
        """Resubmit a task; if the executor is broken, resubmit all unfinished tasks to a new one."""
        if isinstance(cause, TenferroError):
            raise cause
        self.failures[t] += 1
        broken = isinstance(cause, BrokenExecutor)
        if self.failures[t] > self.workers.retries or (broken and not self.workers.own):
            raise self._given_up(t, cause) from cause
        if not broken:
            self._submit(t)
            return
        lost = sorted({t, *self.pending.values()})
        self._cancel()
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self.workers.make()
        for each in lost:
            self._submit(each)

    def _given_up(self, t: int, cause: BaseException) -> WorkerError:
        again = ", ".join([f"{self.names[k]} {n} time(s)" for k, n in enumerate(self.failures) if n and k != t])
        what = (
            f"task {t} of {len(self.names)}, {self.names[t]}, failed {self.failures[t]} time(s), most recently with "
            f"{type(cause).__name__.lstrip('_')}: {cause}{'; failed before: ' + again if again else ''}"
        )
        if isinstance(cause, BrokenExecutor) and not self.workers.own:
            what += "; pass run_on a function that creates executors, so that the rest can continue in a new one"
        else:
            what += "; see the worker's log, or allow more with retries="
        return WorkerError(what, task=t, failures=self.failures[t])

    def _cancel(self) -> None:
        for future in self.pending:
            future.cancel()
        self.pending.clear()

    def close(self) -> None:
        """Cancel the tasks that have not started."""
        self._cancel()
        if self.workers.own:
            self.executor.shutdown(wait=False, cancel_futures=True)
