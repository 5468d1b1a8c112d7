"""`PoolThread`: a thread that carries out closures in the order in which they are posted."""

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
    """Whether the calling thread is that of a pool, or carries out a part of a plan.

    Such a thread never waits for another pool: that one may be waiting for it.
    """
    return THREAD.busy


class PoolThread:
    """A daemon thread with a queue.

    Work runs in a copy of the context of whoever posts it, so that `numpy.errstate` and the limit of ``threads(n)``
    mean what they mean there.

    Args:
        name: of the thread, as debuggers show it.
        cpus: cores that it is pinned to, or None.
        threads: what BLAS and the team may use for its work.
        memory: what native kernels take the memory of their results from, or None.
        call: calls a function, what NumPy allocates in it taken from that memory.
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
        """The system's number of the thread."""
        return self._thread.native_id

    def post(self, run: Callable[[], None]) -> bool:
        """Have `run`, which must not raise, carried out after all that has been posted before; False: it ends."""
        with self._posting:  # nothing is posted behind the end
            if not self._finished:
                self._queue.put((copy_context(), run))
            return not self._finished

    def finish(self) -> None:
        """Let what has been posted be carried out, and end the thread."""
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
                del item, context, run  # while it waits, it holds nobody's arrays
        finally:
            arbiter().scopes(-1)

    def _carry(self, run: Callable[[], None]) -> None:
        allowed = limit_variable.get()
        limit_variable.set(min(allowed, self._threads) if allowed else self._threads)
        own_memory()
        self._call(run)


def awaited(post: Callable[[Callable[[], None]], None], run: Callable[..., Any], raws: tuple[Any, ...]) -> Any:
    """``run(*raws)`` by way of `post`, waited for; raises what it raises."""
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
