"""The open pools, by index; none survives a fork."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any, Final, Protocol

from tenferro_tensor import ComputeDevice
from tenferro_tensor_core import PlacementError
from tenferro_tensor_core.forks import new_lock

CALLER: Final = ComputeDevice("cpu:0")
"""The calling thread, whichever that is."""


class Pool(Protocol):
    """The interface of a `CpuPool` for the table."""

    device: ComputeDevice

    def number(self, index: int) -> None:
        """Become the device with this number."""

    def submit(self, run: Callable[[], None]) -> None:
        """Post a closure."""

    def call(self, run: Callable[..., Any], *raws: Any) -> Any:
        """``run(*raws)`` in the thread of the pool."""

    def synchronize(self) -> None:
        """Wait for everything posted so far."""

    def close(self) -> None:
        """End the thread."""

    def lose(self) -> None:
        """Mark the thread as missing."""


_pools: dict[int, Pool] = {}
_lost: dict[int, str] = {}
"""Closed pools, and the reason."""
_lock = new_lock()


def register(pool: Pool, index: int | None) -> None:
    """Register a pool and assign its number: the requested one, or the lowest free one.

    Raises:
        PlacementError: the index is taken.
    """
    with _lock:
        if index is None:
            index = next(i for i in range(1, len(_pools) + 2) if i not in _pools)
        if index in _pools:
            raise PlacementError(
                f"a pool cpu:{index} was requested, but {_pools[index]!r} is open; close it, or choose another index",
                device=f"cpu:{index}",
            )
        pool.number(index)
        _pools[index] = pool
        _lost.pop(index, None)


def forget(index: int, why: str) -> None:
    """Remove a pool that is no longer open."""
    with _lock:
        _pools.pop(index, None)
        _lost[index] = why


def opened(device: ComputeDevice) -> Pool:
    """The pool of a device other than ``cpu:0``.

    Args:
        device: the device.

    Returns:
        The pool.

    Raises:
        PlacementError: there is none; the text says why.
    """
    pool = _pools.get(device.index)
    if pool is None:
        why = _lost.get(device.index, "no such pool was ever opened")
        raise PlacementError(
            f"{device} was requested, but {why}; open it with tenferro_cpu.CpuPool(index={device.index}), or use "
            f"one of {', '.join(map(str, devices()))}",
            device=str(device),
            devices=tuple(map(str, devices())),
        )
    return pool


def pools() -> tuple[Pool, ...]:
    """The open pools, by index."""
    with _lock:
        return tuple([_pools[i] for i in sorted(_pools)])


def devices() -> tuple[ComputeDevice, ...]:
    """``cpu:0`` and the devices of open pools."""
    return (CALLER, *[pool.device for pool in pools()])


def _lose_all() -> None:
    """In the child of a fork, where the parent's threads do not exist."""
    for index in tuple(_pools):
        _pools[index].lose()
        forget(index, "its thread did not survive the fork of the process")


def _close_all() -> None:
    for pool in pools():
        pool.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lose_all)
