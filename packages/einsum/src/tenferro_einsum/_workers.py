"""Parts of contractions on the workers of any `concurrent.futures.Executor`: threads, processes, Dask, MPI."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tenferro_einsum._search import Progress, reporting
from tenferro_runtime.extension import ArgumentError, TenferroError


class WorkerError(TenferroError, RuntimeError):
    """A part of a contraction failed on its workers more often than was allowed."""


@dataclass(frozen=True)
class Workers:
    """Where parts of contractions run.

    Attributes:
        make: gives the executor; called again where that one is broken.
        own: whether `make` makes a new one each time, which is shut down in the end.
        tasks: number of tasks that the slices or branches of one contraction are dealt to at most.
        retries: how often a task that failed is sent again.
        progress: as for a search, with the number of finished tasks in the place of the cost.
    """

    make: Callable[[], Executor]
    own: bool
    tasks: int
    retries: int
    progress: bool | Progress


_ACTIVE: ContextVar[Workers | None] = ContextVar("tenferro_einsum_workers", default=None)


@contextmanager
def run_on(
    executor: Executor | Callable[[], Executor],
    *,
    tasks: int = 32,
    retries: int = 2,
    progress: bool | Progress = False,
) -> Iterator[None]:
    """Within this block, parts of contractions and of their gradients run on an executor.

    A contraction with a `memory_budget` is done in slices where these are needed. One without is done in branches,
    parts of its tree that have no value in common, where it has large ones; their results come back, and the rest is
    done here. An exception in this process, of `progress` or by an interrupt, cancels the tasks that have not begun.

    Args:
        executor: a `concurrent.futures.Executor`, such as a process pool, ``dask.distributed.Client().get_executor()``
            or ``mpi4py.futures.MPIPoolExecutor()``; or a function that makes one, which is called once more where the
            executor is broken by a process that died.
        tasks: number of tasks that the slices of one contraction are dealt to; each sends its operands once.
        retries: how often a task that failed, with its worker or by itself, is sent again.
        progress: ``True`` for a bar, or a function of the part that is done and the number of finished tasks.

    Raises:
        ArgumentError: `executor` is none and makes none, or `tasks` or `retries` are too small.
        WorkerError: a contraction in the block has a task that failed more often than `retries` allows, or whose
            executor is broken and cannot be made again.

    >>> import numpy as np
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from tenferro_einsum import einsum, run_on
    >>> x = np.ones((100, 100))
    >>> with ThreadPoolExecutor(2) as threads, run_on(threads):
    ...     float(einsum("ij,jk,kl,li->", x, x, x, x, memory_budget=100_000))
    100000000.0
    """
    if tasks < 1 or retries < 0:
        raise ArgumentError(f"run_on takes tasks of at least 1 and retries of at least 0, got {tasks} and {retries}")
    own = not hasattr(executor, "submit")
    if own and not callable(executor):
        raise ArgumentError(f"run_on takes an Executor or a function that makes one, got a {type(executor).__name__}")
    make: Any = executor if own else lambda: executor
    token = _ACTIVE.set(Workers(make, own, tasks, retries, progress))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def each_task(work: Callable[..., list[Any]], job: Any, count: int, arrays: Sequence[Any]) -> Iterator[Any]:
    """What ``work(job, numbers, arrays)`` gives for the numbers below `count`, in their order.

    Without workers they are done here, one by one.
    """
    workers = _ACTIVE.get()
    if workers is None or count < 2:
        for number in range(count):
            yield from job.run((number,), arrays)
        return
    tasks = min(workers.tasks, count)
    shares = [range(count * t // tasks, count * (t + 1) // tasks) for t in range(tasks)]

    def send(executor: Executor, t: int) -> Future[Any]:
        mine, parts = job.sent(shares[t], arrays)
        return executor.submit(work, mine, shares[t], parts)

    for found in _results(workers, send, tasks):
        yield from found


def each_job(
    work: Callable[..., list[Any]], workers: Workers, jobs: Sequence[tuple[Any, Sequence[Any]]]
) -> Iterator[list[Any]]:
    """What ``work(job, (0,), arrays)`` gives for each job and its arrays, in their order."""
    return _results(workers, lambda executor, t: executor.submit(work, jobs[t][0], (0,), jobs[t][1]), len(jobs))


def active() -> Workers | None:
    """The workers of the innermost `run_on`."""
    return _ACTIVE.get()


def _results(workers: Workers, send: Callable[[Executor, int], Future[Any]], tasks: int) -> Iterator[list[Any]]:
    run = _Run(workers, send, tasks)
    try:
        with reporting(workers.progress) as tell:
            yield from run.results(tell)
    finally:
        run.close()


class _Run:
    """The tasks of one contraction: sent, sent again where they failed, cancelled where the rest is not wanted."""

    def __init__(self, workers: Workers, send: Callable[[Executor, int], Future[Any]], tasks: int) -> None:
        self.workers, self.send, self.tasks = workers, send, tasks
        self.executor = workers.make()
        self.pending: dict[Future[Any], int] = {}
        self.failures = [0] * tasks

    def results(self, tell: Progress) -> Iterator[list[Any]]:
        done: dict[int, list[Any]] = {}
        following = finished = 0
        for t in range(self.tasks):
            self._submit(t)
        while self.pending:
            for future in wait(self.pending, return_when=FIRST_COMPLETED).done:
                if future not in self.pending:  # sent again, with all others of a broken executor
                    continue
                t = self.pending.pop(future)
                cause = future.exception()
                if cause is not None:
                    self._again(t, cause)
                    continue
                done[t] = future.result()
                finished += 1
                tell(finished / self.tasks, float(finished))
            while following in done:
                yield done.pop(following)
                following += 1

    def _submit(self, t: int) -> None:
        try:
            self.pending[self.send(self.executor, t)] = t
        except BrokenExecutor as cause:
            self._again(t, cause)

    def _again(self, t: int, cause: BaseException) -> None:
        self.failures[t] += 1
        if isinstance(cause, TenferroError) or self.failures[t] > self.workers.retries:
            if isinstance(cause, TenferroError):
                raise cause
            raise WorkerError(
                f"task {t} of {self.tasks} failed {self.failures[t]} time(s), at last with {type(cause).__name__}: "
                f"{cause}; see the worker's log, or allow more with retries="
            ) from cause
        if isinstance(cause, BrokenExecutor):
            if not self.workers.own:
                raise WorkerError(
                    "a process of the executor died, and the executor takes no more tasks; pass run_on a function that "
                    "makes executors, so that the rest can go on in a new one"
                ) from cause
            # The others will fail with the same executor: all of them go to the new one.
            lost = [self.pending.pop(f) for f in list(self.pending)]
            self.executor.shutdown(wait=False, cancel_futures=True)
            self.executor = self.workers.make()
            for other in lost:
                self._submit(other)
        self._submit(t)

    def close(self) -> None:
        """Cancel what has not begun."""
        for future in self.pending:
            future.cancel()
        if self.workers.own:
            self.executor.shutdown(wait=False, cancel_futures=True)
