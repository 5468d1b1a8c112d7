"""`CpuPool`: a CPU device other than the calling thread."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Self

from tenferro_cpu.native.memory._pool import MemoryPool, memory_pool
from tenferro_cpu.native.threads._threads import usable_cores
from tenferro_cpu.pools._affinity import checked, usual
from tenferro_cpu.pools._opened import forget, pools, register
from tenferro_cpu.pools._thread import PoolThread, awaited, inside
from tenferro_tensor import ComputeDevice
from tenferro_tensor_core import ArgumentError, PlacementError
from tenferro_tensor_core.forks import new_lock


class CpuPool:
    """The device ``cpu:<index>``: a thread that carries out what is computed there, with cores and memory of its own.

    Work goes there as to any device: by ``x.with_compute_device("cpu:1")``, ``with compute_device("cpu:1")`` or a
    context. A single operation is handed over and waited for (about 70 µs), a compiled program is handed over
    as a whole. Pools pay where several do long work at once. The thread is made when it is first needed.

    Args:
        cpus: cores that the thread is pinned to, and with it the threads that it makes; by default one, the pools side
            by side, for a pool of one thread. Threads that a BLAS has already are not moved.
        threads: threads that BLAS and the team of native kernels may use for one piece of work.
        index: number of the device, from 1 on; by default the lowest that is free.
        memory: bytes that the allocator may keep unused; by default a quarter of what that of the process may. Without
            native kernels NumPy allocates, and there is nothing to keep.

    Attributes:
        device: the device.
        cpus: the cores, None where threads are not pinned.
        threads: the limit.
        memory: the allocator that large results come from, or None.

    Raises:
        ArgumentError: an argument is out of its range.
        PlacementError: the index is taken.
        UnsupportedError: cores are named where the system pins no threads.

    >>> import tenferro_runtime as tr
    >>> with CpuPool() as pool, tr.compute_device(pool.device):
    ...     tr.sum(tr.asarray([1.0, 2.0]))
    Tensor(3.)
    """

    def __init__(
        self,
        cpus: Iterable[int] | None = None,
        *,
        threads: int = 1,
        index: int | None = None,
        memory: int | None = None,
    ) -> None:
        self.threads = min(_whole("threads", threads), usable_cores())
        if index is not None:
            _whole("index", index)
        if memory is not None:
            _whole("memory", memory, 0)
        named = None if cpus is None else checked(cpus)
        whole = memory_pool()
        limit = None if whole is None else whole.limit // 4 if memory is None else memory
        self.memory = None if limit is None else MemoryPool(limit)
        self._thread: PoolThread | None = None
        self._closed = ""
        self._starting = new_lock()
        self.cpus = named
        register(self, index)

    def number(self, index: int) -> None:
        """Become the device with this number."""
        self.device = ComputeDevice(f"cpu:{index}")
        self.cpus = usual(index, self.threads) if self.cpus is None else self.cpus

    def submit(self, run: Callable[[], None]) -> None:
        """Post a closure; it runs in the thread of the pool, after what was posted before, and must not raise.

        In a thread of a pool it runs at once: a pool never waits for a pool.

        Raises:
            PlacementError: the pool is closed.
        """
        if inside():
            run()
        else:
            self._post(run)

    def call(self, run: Callable[..., Any], *raws: Any) -> Any:
        """``run(*raws)`` in the thread of the pool, waited for; inline in a thread of a pool."""
        if inside():
            return run(*raws)
        return awaited(self._post, run, raws)

    def synchronize(self) -> None:
        """Wait until what has been posted so far is done, as it is once the pool is closed."""
        if self._thread is None:
            return
        try:
            self.call(_nothing)
        except PlacementError:
            with self._starting:  # held by `close` until everything is carried out
                pass

    def close(self) -> None:
        """Carry out what has been posted, end the thread and give unused memory back. Closing again does nothing.

        Raises:
            PlacementError: the pool's own thread asks, which would wait for itself.
        """
        if inside():
            raise PlacementError(
                f"{self!r} cannot be closed by work that runs in a pool; close it in the thread that opened it"
            )
        with self._starting:
            if self._closed:
                return
            self._closed = "that pool is closed"
            forget(self.device.index, self._closed)
            if self._thread is not None:
                self._thread.finish()
        if self.memory is not None:
            self.memory.limit = 0  # arrays that are alive keep their blocks, which go to the system afterwards

    def lose(self) -> None:
        """In the child of a fork: the thread is not there."""
        self._thread, self._closed = None, "its thread did not survive the fork of the process"

    def _post(self, run: Callable[[], None]) -> None:
        thread = self._thread or self._started()
        if thread is None or not thread.post(run):
            raise PlacementError(
                f"{self.device} was asked for, but {self._closed}; open a CpuPool again", device=str(self.device)
            )

    def _started(self) -> PoolThread | None:
        with self._starting:
            if self._thread is None and not self._closed:
                call: Any = operator.call if self.memory is None else self.memory.scoped(operator.call)
                name = f"tenferro {self.device}"
                self._thread = PoolThread(name, self.cpus, self.threads, self.memory, call)
            return self._thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        cores = "any cores" if self.cpus is None else f"cores {', '.join(map(str, sorted(self.cpus)))}"
        return f"CpuPool({self.device}, {cores}, threads={self.threads}{', closed' if self._closed else ''})"


def open_pools() -> tuple[CpuPool, ...]:
    """The pools that are open, by index; ``cpu:0``, the calling thread, is none.

    >>> with CpuPool(index=5) as pool:
    ...     [p.device for p in open_pools()]
    [ComputeDevice('cpu:5')]
    """
    return tuple([pool for pool in pools() if isinstance(pool, CpuPool)])


def _whole(name: str, n: int, least: int = 1) -> int:
    if not isinstance(n, int) or isinstance(n, bool) or n < least:
        kind = "a positive integer" if least else "an integer"
        raise ArgumentError(f"CpuPool({name}={n!r}): it is {kind}; pass {least} or more", **{name: n})
    return n


def _nothing() -> None:
    """What is posted to learn that everything before it is done."""
