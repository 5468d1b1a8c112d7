"""`CpuPool`: a CPU device other than the calling thread."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

from tenferro_cpu.native.memory._pool import MemoryPool, memory_pool
from tenferro_cpu.native.threads._threads import usable_cores
from tenferro_cpu.pools._affinity import checked, usual
from tenferro_cpu.pools._opened import forget, pools, register
from tenferro_cpu.pools._thread import PoolThread, awaited, inside
from tenferro_tensor import ComputeDevice
from tenferro_tensor_core import ArgumentError, PlacementError
from tenferro_tensor_core.forks import new_lock

R = TypeVar("R")


class CpuPool:
    """The device ``cpu:<index>``: a thread with its own cores and memory that runs the work placed there.

    Work is placed as on any device: by ``x.with_compute_device("cpu:1")``, ``with compute_device("cpu:1")`` or a
    context. The caller hands over a single operation and waits for it (about 70 µs); it hands over a compiled program
    as a whole. Pools pay if several run long work at once. The thread starts when it is first needed.

    Methods take:
        index: number of the device.
        run: callable.
        raws: its operands.

    Methods return:
        The result of the callable.

    Args:
        cpus: cores to pin the thread to, and the threads that it starts; by default one core per pool, for a pool of
            one thread. Existing threads of a BLAS are not moved.
        threads: threads that BLAS and the thread team may use per operation.
        index: number of the device, from 1 on; by default the lowest free one.
        memory: maximum number of unused bytes that the allocator keeps; by default a quarter of the process's limit.
            Without native kernels NumPy allocates, and nothing is kept.

    Attributes:
        device: the device.
        cpus: the cores, None if threads are not pinned.
        threads: the limit.
        memory: the allocator of large results, or None.

    Raises:
        ArgumentError: an argument is out of range.
        PlacementError: the index is taken.
        UnsupportedError: cores are given and the system cannot pin threads.

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
        self.threads: int = min(_whole("threads", threads), usable_cores())
        if index is not None:
            _whole("index", index)
        if memory is not None:
            _whole("memory", memory, 0)
        named = None if cpus is None else checked(cpus)
        whole = memory_pool()
        limit = None if whole is None else whole.limit // 4 if memory is None else memory
        self.memory: MemoryPool | None = None if limit is None else MemoryPool(limit)
        self._thread: PoolThread | None = None
        self._closed = ""
        self._starting = new_lock()
        self.cpus = named
        register(self, index)

    def number(self, index: int) -> None:
        """Become the device with this number."""
        self.device: ComputeDevice = ComputeDevice(f"cpu:{index}")
        self.cpus = usual(index, self.threads) if self.cpus is None else self.cpus

    def submit(self, run: Callable[[], None]) -> None:
        """Post a closure to run in the pool's thread after everything posted before; it must not raise.

        In a pool's thread it runs at once: a pool never waits for a pool.

        Raises:
            PlacementError: the pool is closed.
        """
        if inside():
            run()
        else:
            self._post(run)

    def call(self, run: Callable[..., R], *raws: Any) -> R:
        """Run ``run(*raws)`` in the pool's thread and wait for it; inline in a pool's thread."""
        if inside():
            return run(*raws)
        return awaited(self._post, run, raws)  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        """Wait until everything posted so far is done; a closed pool is done."""
        if self._thread is None:
            return
        try:
            self.call(_nothing)
        except PlacementError:
            with self._starting:  # held by `close` until everything has run
                pass

    def close(self) -> None:
        """Run everything posted, end the thread and release unused memory. Closing again does nothing.

        Raises:
            PlacementError: called in the pool's own thread, which would wait for itself.
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
            self.memory.limit = 0  # live arrays keep their blocks, which return to the system afterwards

    def lose(self) -> None:
        """In the child of a fork, mark the thread as missing."""
        self._thread, self._closed = None, "its thread did not survive the fork of the process"

    def _post(self, run: Callable[[], None]) -> None:
        thread = self._thread or self._started()
        if thread is None or not thread.post(run):
            raise PlacementError(
                f"{self.device} was requested, but {self._closed}; open a CpuPool again", device=str(self.device)
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
    """The open pools, by index; excludes ``cpu:0``, the calling thread.

    Returns:
        A tuple of `CpuPool`.

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
    """Posted to learn that everything before it is done."""
