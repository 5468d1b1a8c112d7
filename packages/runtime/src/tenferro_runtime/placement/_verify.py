"""The executable specification of plans, independent of the planner: only the recorded waits count.

1. There is no deadlock: simulating the threads, every step runs.
2. A wait for a step of a stream finds an event that was issued before; a wait for a step of a thread finds a number on
   its timeline.
3. When a step starts, the steps that compute its operands are done, or precede it on its stream.
4. A value is released after all its reads. A value on an accelerator is released exactly once, on a stream of that
   accelerator, unless it may alias values of the caller.
5. Outputs on an accelerator are ordered before any later work of the caller there.
"""

from __future__ import annotations

from typing import NoReturn

from tenferro_runtime.placement._plan import ExecutionPlan
from tenferro_runtime.placement._step import Step, by_handle, kept_by_host
from tenferro_tensor_core import TenferroError


class PlanError(TenferroError, ValueError):
    """A plan violates the specification, which is a bug in tenferro; the text names the step."""


def verify(plan: ExecutionPlan) -> ExecutionPlan:
    """Check a plan against the specification.

    Args:
        plan: the plan.

    Returns:
        The plan.

    Raises:
        PlanError: the plan violates the specification; the text names the step.
    """
    _Verifier(plan).run()
    return plan


class _Verifier:
    """Replays a plan; sets of steps are bits of integers."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.before: dict[int, int] = {}
        """For each step that has run, the steps that are done when it starts."""
        self.threads = [0] * len(plan.threads)
        self.streams = [0] * len(plan.queues)

    def run(self) -> None:
        rows = [list(self.plan.of_thread(t)) for t in range(len(self.plan.threads))]
        places = [0] * len(rows)
        moving = True
        while moving:
            moving = False
            for t, row in enumerate(rows):
                while places[t] < len(row) and all(d in self.before for d in self.plan.steps[row[places[t]]].waits):
                    self._take(row[places[t]], self.plan.steps[row[places[t]]])
                    places[t] += 1
                    moving = True
        for t, row in enumerate(rows):
            if places[t] < len(row):
                self._broken(row[places[t]], "waits for ever")
        self._check()

    def _take(self, i: int, step: Step) -> None:
        known = self.threads[step.thread]
        if not step.action.queue.host:
            known |= self.streams[step.queue]
        for d in step.waits:
            other = self.plan.steps[d]
            done = self.before[d] | 1 << d
            if other.action.queue.host or other.thread != step.thread:
                if not other.signal:
                    self._broken(i, f"waits for step {d}, which sends no signal")
            if not other.action.queue.host and not other.event and not by_handle(step.action, other.action):
                self._broken(i, f"waits for step {d}, which records no event")
            known |= done
            if other.action.queue.host and not step.action.queue.host:
                self.threads[0] |= done  # the caller waits, not the stream
        self.before[i] = known
        if step.action.queue.host:
            self.threads[step.thread] = known | 1 << i
        else:
            self.streams[step.queue] = known | 1 << i

    def _check(self) -> None:
        plan = self.plan
        makers: dict[int, int] = {}
        uses: dict[int, list[int]] = {}
        for i, step in enumerate(plan.steps):
            for v in step.action.results:
                makers[v] = i
            for v in (*step.action.reads, *step.action.results):
                uses.setdefault(v, []).append(i)
        freed: dict[int, int] = {}
        for i, step in enumerate(plan.steps):
            for v in step.action.reads:
                if v in makers and not self._before(makers[v], i):
                    self._broken(i, f"reads v{v}, which step {makers[v]} may not have computed yet")
            for v in step.frees:
                if v in freed:
                    self._broken(i, f"frees v{v} a second time")
                freed[v] = i
                for u in uses[v]:
                    if u != i and not self._released(u, i, v):
                        self._broken(i, f"frees v{v}, which step {u} may still use")
                if not kept_by_host(plan.homes[v]) and step.action.queue.device is not plan.homes[v]:
                    self._broken(i, f"frees v{v}, which is on {plan.homes[v]}")
        for v in makers:
            if not kept_by_host(plan.homes[v]) and v not in freed and v not in plan.kept:
                self._broken(makers[v], f"makes v{v}, which nobody frees")
        for v in plan.kept:
            known = self._at_the_end(v)
            for u in uses.get(v, ()):
                if not known >> u & 1:
                    self._broken(u, f"uses v{v}, which the caller has, and is not ordered before the end of the run")

    def _at_the_end(self, v: int) -> int:
        """The steps that are done before the caller uses the accelerator of a variable again, after the run."""
        known = 0
        for thread in self.threads:
            known |= thread
        for n, queue in enumerate(self.plan.queues):
            if queue == (self.plan.homes[v], "compute"):
                known |= self.streams[n]
        return known

    def _before(self, d: int, i: int) -> bool:
        return bool(self.before[i] >> d & 1)

    def _released(self, use: int, i: int, v: int) -> bool:
        """Whether a use is ordered before the release of the memory by step `i`."""
        step, other = self.plan.steps[i], self.plan.steps[use]
        if kept_by_host(self.plan.homes[v]) and step.thread == other.thread == 0:
            return other.at <= step.at
        return self._before(use, i)

    def _broken(self, i: int, why: str) -> NoReturn:
        step = self.plan.steps[i]
        raise PlanError(f"step {i}, {step.action.kind.value} on {self.plan.queues[step.queue]}, {why}", step=i)
