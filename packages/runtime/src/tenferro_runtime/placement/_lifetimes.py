"""Assigns the release of each value of a plan to a step after its last use.

A value in main memory is released by the first thread that knows that all readers are done. A value on an accelerator
is released on a stream of its device that is ordered after all readers, or at the end of the run. Values that may share
memory are released together, and not at all if an input, a constant or an output is among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tenferro_runtime.placement._moves import Kind
from tenferro_runtime.placement._step import Clock, Step, kept_by_host
from tenferro_runtime.placement._tasks import Work
from tenferro_tensor import ComputeDevice

MAX_RELEASE_DISTANCE: Final = 64
"""Number of steps after the last use of a value that are searched for one that may release it."""


class Lifetimes:
    """Assigns each value that can be released to a step.

    Args:
        work: the work of the plan.
        steps: steps of the plan, whose `frees` are set.
        clocks: the vector clock of each step.
        homes: device in whose memory a variable is.
        outputs: variables that the caller receives.

    Attributes:
        kept: variables on accelerators that are not freed.
        made: those of them that share no memory with inputs or constants.
    """

    def __init__(
        self,
        work: Work,
        steps: Sequence[Step],
        clocks: Sequence[Clock],
        homes: Mapping[int, ComputeDevice | None],
        outputs: Sequence[int],
    ) -> None:
        self.steps, self.clocks, self.homes = steps, clocks, homes
        self._given = {*work.inputs, *work.constants}
        self._outside = {*self._given, *outputs}
        self._uses: dict[int, list[int]] = {}
        for i, step in enumerate(steps):
            for v in (*step.action.reads, *step.action.results):
                self._uses.setdefault(v, []).append(i)
        self._left: dict[ComputeDevice, list[int]] = {}
        self._uses_left: dict[ComputeDevice, set[int]] = {}
        self._uses_kept: dict[ComputeDevice, set[int]] = {}
        kept, made = self._give()
        self.kept, self.made = frozenset(kept), frozenset(made)

    def left(self, device: ComputeDevice) -> tuple[list[int], set[int], set[int]]:
        """The variables to release at the end of an accelerator's compute stream, the steps that use them, and the
        steps that use the caller's values there.
        """
        empty: set[int] = set()
        return self._left.get(device, []), self._uses_left.get(device, empty), self._uses_kept.get(device, empty)

    def _give(self) -> tuple[list[int], list[int]]:
        frees: dict[int, list[int]] = {}
        kept: list[int] = []
        made: list[int] = []
        for v, uses in self._uses.items():
            if kept_by_host(self.homes[v]) and v not in self._outside:
                last = self._covering(uses, None)
                if last is not None:
                    frees.setdefault(last, []).append(v)
        for device, members in self._groups():
            uses = sorted({i for v in members for i in self._uses[v]})
            if not self._outside.isdisjoint(members):
                kept += members
                made += members if self._given.isdisjoint(members) else ()
                self._uses_kept.setdefault(device, set()).update(uses)
                continue
            last = self._covering(uses, device)
            if last is None:
                self._left.setdefault(device, []).extend(members)
                self._uses_left.setdefault(device, set()).update(uses)
            else:
                frees.setdefault(last, []).extend(members)
        for i, values in frees.items():
            self.steps[i].frees = tuple(values)
        return kept, made

    def _covering(self, uses: Sequence[int], device: ComputeDevice | None) -> int | None:
        """The first step after which all uses are known to be done; for an accelerator, on one of its streams."""
        last = max(uses)
        for i in range(last, min(len(self.steps), last + MAX_RELEASE_DISTANCE)):
            queue = self.steps[i].action.queue
            if device is None or (queue.device is device and not queue.host):
                if all(self._covers(i, u, device) for u in uses):
                    return i
        return None

    def _covers(self, i: int, use: int, device: ComputeDevice | None) -> bool:
        step, other = self.steps[i], self.steps[use]
        if device is None and step.thread == other.thread == 0:
            return use <= i  # the caller passes values in main memory when it issues a step
        return self.clocks[i][other.queue] >= other.turn

    def _groups(self) -> list[tuple[ComputeDevice, list[int]]]:
        """Groups of variables on accelerators that may share memory."""
        parent: dict[int, int] = {}

        def root(v: int) -> int:
            while parent.setdefault(v, v) != v:
                parent[v] = v = parent[parent[v]]
            return v

        for step in self.steps:
            task = step.action.task
            for v in step.action.results:
                if task is not None and task.views and step.action.kind is Kind.LAUNCH:
                    for u in step.action.reads:
                        if self.homes[u] is self.homes[v]:
                            parent[root(v)] = root(u)
        found: dict[int, list[int]] = {}
        for v in self._uses:
            if not kept_by_host(self.homes[v]):
                found.setdefault(root(v), []).append(v)
        return [(self.homes[r], members) for r, members in found.items()]  # type: ignore[misc]
