"""The pools that are open, by index; none survives a fork."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, Final

from tenferro_tensor import ComputeDevice
from tenferro_tensor_core import PlacementError

if TYPE_CHECKING:
    from tenferro_cpu.pools._pool import CpuPool

CALLER: Final = ComputeDevice("cpu:0")
"""The calling thread, whichever that is."""

_pools: dict[int, CpuPool] = {}
_lost: dict[int, str] = {}
"""Pools that are not open any more, and why."""
_lock = threading.RLock()


def register(pool: CpuPool, index: int | None) -> None:
    """Take a pool in and tell it its number: the one that it wants, or the lowest that is free.

    Raises:
        PlacementError: the index is taken.
    """
    with _lock:
        if index is None:
            index = next(i for i in range(1, len(_pools) + 2) if i not in _pools)
        if index in _pools:
            raise PlacementError(
                f"a pool cpu:{index} was asked for, but {_pools[index]!r} is open; close it, or choose another index",
                device=f"cpu:{index}",
            )
        pool.number(index)
        _pools[index] = pool
        _lost.pop(index, None)


def forget(index: int, why: str) -> None:
    """A pool is not open any more."""
    with _lock:
        _pools.pop(index, None)
        _lost[index] = why


def opened(device: ComputeDevice) -> CpuPool:
    """The pool of a device other than ``cpu:0``.

    Raises:
        PlacementError: there is none; the text says what became of it.
    """
    pool = _pools.get(device.index)
    if pool is None:
        why = _lost.get(device.index, "no such pool was ever opened")
        raise PlacementError(
            f"{device} was asked for, but {why}; open it with tenferro_cpu.CpuPool(index={device.index}), or use "
            f"one of {', '.join(map(str, devices()))}",
            device=str(device),
            devices=tuple(map(str, devices())),
        )
    return pool


def open_pools() -> tuple[CpuPool, ...]:
    """The pools that are open, by index; ``cpu:0``, the calling thread, is none.

    >>> with CpuPool(index=5) as pool:
    ...     [p.device for p in open_pools()]
    [ComputeDevice('cpu:5')]
    """
    with _lock:
        return tuple([_pools[i] for i in sorted(_pools)])


def devices() -> tuple[ComputeDevice, ...]:
    """``cpu:0`` and the devices of open pools."""
    return (CALLER, *[pool.device for pool in open_pools()])


def _lose_all() -> None:
    """In the child of a fork: threads of the parent are not here."""
    global _lock
    _lock = threading.RLock()
    for index in tuple(_pools):
        _pools[index].lose()
        forget(index, "its thread did not survive the fork of the process")


def _close_all() -> None:
    for pool in open_pools():
        pool.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lose_all)
