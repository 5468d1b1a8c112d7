"""`Graphs`: runs that only launch kernels, recorded once and replayed by the driver with one call.

A graph contains addresses, so it has memory of its own: operands are copied in, results out. It is worth that for many
small launches. Off by default; `GRAPHS_VARIABLE` turns it on.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from tenferro_gpu.devices._pools import asynchronous
from tenferro_gpu.whole._contract import KernelTarget
from tenferro_gpu.whole._steps import HostLoop, HostStep, KernelLaunch
from tenferro_tensor_core import evaluate
from tenferro_tensor_core.forks import new_lock

GRAPHS_VARIABLE: Final = "TENFERRO_CUDA_GRAPHS"
"""Environment variable that turns graphs on for programs that are compiled afterwards."""

MIN_LAUNCHES: Final = 16
"""Minimum launches of a run that is recorded; fewer cost less than the copies."""

MAX_LAUNCHES: Final = 1 << 12
"""Maximum launches of a run that is recorded."""

MAX_GRAPHS: Final = 8
"""Maximum graphs per program, by sizes, device and stream, the newest ones; each keeps the memory of a run."""

Enqueue = Callable[[int, tuple[int, ...], Sequence[Any], Sequence[Any], Any], None]
_Key = tuple[int, int, tuple[int, ...]]


def wanted() -> bool:
    """Whether programs that are compiled now record graphs.

    CUDA's memory pool has none: memory that is freed meanwhile would become part of the graph, and be freed at every
    replay.
    """
    return os.environ.get(GRAPHS_VARIABLE, "") == "1" and not asynchronous()


def launches(steps: Sequence[HostStep], sizes: dict[str, int]) -> int | None:
    """Number of launches of a run.

    Args:
        steps: its steps.
        sizes: values of the sizes.

    Returns:
        The number; None if the host decides or calls a library.
    """
    total = 0
    for step in steps:
        match step:
            case KernelLaunch():
                total += 1
            case HostLoop(_, extent, body, _):
                inner = launches(body, sizes)
                if inner is None:
                    return None
                total += evaluate(extent, sizes) * inner
            case _:
                return None
    return total


class Graphs:
    """The graphs of one program.

    Args:
        target: the devices.
        memory: allocates the memory of a run, from the values of the sizes.
        enqueue: launches a run on given arrays and memory.
    """

    def __init__(self, target: KernelTarget, memory: Callable[[tuple[int, ...]], Any], enqueue: Enqueue) -> None:
        self._target, self._memory, self._enqueue = target, memory, enqueue
        self._kept: OrderedDict[_Key, _Replay | None] = OrderedDict()
        self._lock = new_lock()

    def replayed(self, device: int, values: tuple[int, ...], inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
        """Run a recorded graph, or record it at the second run with these sizes; whether that was done.

        The device must be current.
        """
        key = device, self._target.stream(), values
        with self._lock:  # copies and launches of several threads must not mix
            if key not in self._kept:
                self._kept[key] = None
                while len(self._kept) > MAX_GRAPHS:
                    self._kept.popitem(last=False)
                return False
            replay = self._kept[key]
            if replay is None:
                replay = self._kept[key] = self._recorded(device, values, inputs, outputs)
            replay(inputs, outputs)
        return True

    def _recorded(self, device: int, values: tuple[int, ...], inputs: Sequence[Any], outputs: Sequence[Any]) -> _Replay:
        own_inputs, own_outputs = ([self._target.empty(x.shape, x.dtype) for x in of] for of in (inputs, outputs))
        memory = self._memory(values)
        launch = self._target.recorded(lambda: self._enqueue(device, values, own_inputs, own_outputs, memory))

        return _Replay(launch, own_inputs, own_outputs, memory)


class _Replay:
    """A graph with its memory, which lives as long."""

    def __init__(self, launch: Callable[[], None], inputs: list[Any], outputs: list[Any], memory: Any) -> None:
        self._launch, self._inputs, self._outputs, self._memory = launch, inputs, outputs, memory

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        for own, x in zip(self._inputs, inputs, strict=True):
            own[...] = x
        self._launch()
        for own, x in zip(self._outputs, outputs, strict=True):
            x[...] = own
