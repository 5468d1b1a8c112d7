"""`PoolThread`: a thread that runs closures in the order in which they are posted."""

from __future__ import annotations

import threading
from _thread import allocate_lock
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any

from tenferro_cpu.native.memory._pool import MemoryPool, here, own_memory
from tenferro_cpu.native.threads._threads import arbiter, limit_variable
from tenferro_cpu.pools._affinity import pin
from tenferro_tensor.backends import THREAD


def inside() -> bool:
    """Whether the calling thread belongs to a pool, or runs a part of a plan.

    Such a thread never waits for another pool, which may be waiting for it.

    Returns:
        The flag.
    """
    return THREAD.busy


class PoolThread:
    """A daemon thread with a queue.

    Work runs in a copy of the poster's context, so that `numpy.errstate` and the limit of ``threads(n)`` apply.

    Args:
        name: name of the thread in debuggers.
        cpus: cores to pin it to, or None.
        threads: threads that BLAS and the team may use for its work.
        memory: source of the results of native kernels, or None.
        call: calls a function so that NumPy's allocations in it come from that memory.
    """

    def __init__(
        self,
        name: str,
        cpus: frozenset[int] | None,
        threads: int,
        memory: MemoryPool | None,
        call: Callable[[Callable[[], None]], None],
    ) -> None:
        self._cpus, self._threads, self._memory, self._call = cpus, threads, memory, call
        self._posting, self._finished = allocate_lock(), False
        self._queue: SimpleQueue[tuple[Context, Callable[[], None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def native_id(self) -> int | None:
        """The system's identifier of the thread."""
        return self._thread.native_id

    def post(self, run: Callable[[], None]) -> bool:
        """Queue `run`, which must not raise; returns False if the thread has ended."""
        with self._posting:  # nothing may be posted after the end
            if not self._finished:
                self._queue.put((copy_context(), run))
            return not self._finished

    def finish(self) -> None:
        """Run everything posted, then end the thread."""
        with self._posting:
            self._finished = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        THREAD.busy, here.memory = True, self._memory
        pin(self._cpus)
        arbiter().scopes(1)
        try:
            while (item := self._queue.get()) is not None:
                context, run = item
                context.run(self._carry, run)
                del item, context, run  # while waiting, hold no references to arrays
        finally:
            arbiter().scopes(-1)

    def _carry(self, run: Callable[[], None]) -> None:
        allowed = limit_variable.get()
        limit_variable.set(min(allowed, self._threads) if allowed else self._threads)
        own_memory()
        self._call(run)


def awaited(post: Callable[[Callable[[], None]], None], run: Callable[..., Any], raws: tuple[Any, ...]) -> Any:
    """Run ``run(*raws)`` through `post` and wait for it; raises what it raises."""
    done, found, failed = allocate_lock(), [], []

    def carry() -> None:
        try:
            found.append(run(*raws))
        except BaseException as error:
            failed.append(error)
        finally:
            done.release()

    done.acquire()
    post(carry)
    done.acquire()
    if failed:
        try:
            raise failed[0]
        finally:
            failed.clear()  # an error's traceback holds this frame
    return found[0]
