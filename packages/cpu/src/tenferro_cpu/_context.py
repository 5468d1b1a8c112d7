"""`CpuContext`: the execution resources of the CPU as an explicit object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

from tenferro_cpu.native.threads._threads import threads as at_most
from tenferro_cpu.native.threads._threads import usable_cores
from tenferro_cpu.pools import CpuPool, opened
from tenferro_cpu.pools._opened import CALLER
from tenferro_tensor import ComputeDevice
from tenferro_tensor.device_model import Allocator
from tenferro_tensor_core import ArgumentError, PlacementError


class CpuContext:
    """Execution on a CPU device with a limited number of threads, for ``with compute_context(...)``.

    All arguments are checked when the context is created; the thread of a pool starts with its first work.

    Args:
        device: a CPU device, its number or its pool; by default ``cpu:0``, the calling thread.
        threads: maximum number of threads per operation; by default the limit of the calling thread or of the pool.
        allocator: source of large results, a `MemoryPool` or `NumpyMemory`; by default `memory_pool`. Pools have their
            own allocator, see `CpuPool`.

    Attributes:
        device: the device that work runs on.
        threads: the limit, or None.
        allocator: the allocator, or None for the default one.

    Raises:
        PlacementError: the device does not belong to this backend, or no pool with that number is open.
        ArgumentError: `threads` is not a positive integer, or an allocator is given for a pool.

    >>> CpuContext(threads=1)
    CpuContext('cpu:0', threads=1)
    """

    __slots__ = ("allocator", "device", "threads")
    device: ComputeDevice
    threads: int | None
    allocator: Allocator | None

    def __init__(
        self,
        device: str | ComputeDevice | CpuPool | int = CALLER,
        threads: int | None = None,
        allocator: Allocator | None = None,
    ) -> None:
        name = device.device if isinstance(device, CpuPool) else f"cpu:{device}" if isinstance(device, int) else device
        self.device = ComputeDevice(name)
        if self.device.kind != "cpu":
            raise PlacementError(
                f"a CpuContext was requested on {self.device}, which is not a CPU device; use 'cpu:<number>', "
                "or the context of the backend that offers the device",
                device=str(self.device),
            )
        if self.device is not CALLER:
            opened(self.device)
        if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
            raise ArgumentError(f"CpuContext(threads={threads!r}): it is a positive integer; pass 1 or more")
        self.threads = None if threads is None else min(threads, usable_cores())
        if allocator is not None and self.device is not CALLER:
            raise ArgumentError(
                f"CpuContext(allocator=...) was requested on {self.device}, whose memory is its own; open it with "
                "CpuPool(memory=...)"
            )
        self.allocator = allocator

    @classmethod
    def for_device(cls, index: int = 0) -> CpuContext:
        """The unlimited context of ``cpu:<index>``, the same object for every call.

        Args:
            index: number of the device.

        Returns:
            The context.

        Raises:
            PlacementError: no pool with that number is open.

        >>> CpuContext.for_device(0) is CpuContext.for_device(0)
        True
        """
        if index:
            opened(ComputeDevice(f"cpu:{index}"))
        return _kept(index)

    def activate(self) -> AbstractContextManager[Any]:
        """Enter the context: sets the thread limit and the allocator."""
        return self._activated()

    @contextmanager
    def _activated(self) -> Iterator[None]:
        with ExitStack() as stack:
            if self.threads is not None:
                stack.enter_context(at_most(self.threads))
            if self.allocator is not None:
                stack.enter_context(self.allocator.serving())
            yield

    def __repr__(self) -> str:
        more = {"threads": self.threads, "allocator": self.allocator}
        told = [f", {name}={value!r}" for name, value in more.items() if value is not None]
        return f"CpuContext({str(self.device)!r}{''.join(told)})"


@cache
def _kept(index: int) -> CpuContext:
    return CpuContext(index)
