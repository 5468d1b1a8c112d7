"""Orders the actions of a plan: streams are fed early, and waits for other threads come late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from tenferro_runtime.placement._moves import Action
from tenferro_runtime.placement._queue import Queue


def ordered(actions: Sequence[Action], threads: Mapping[Queue, int]) -> list[int]:
    """Numbers of the actions in an order that respects their operands.

    Actions that depend on fewer hand-overs between threads come first, so that a thread does all its independent work
    before it waits. Among these, actions issued to a stream precede those that occupy the thread; then the order of the
    source decides.

    Args:
        actions: the actions, in a topological order.
        threads: number of the thread of each host queue; thread 0 issues all others.
    """
    maker = {v: i for i, action in enumerate(actions) for v in action.results}
    hops: list[int] = []
    readers: list[list[int]] = [[] for _ in actions]
    missing: list[int] = []
    for i, action in enumerate(actions):
        before = {maker[v] for v in action.reads if v in maker}
        most = 0
        for j in before:
            other = actions[j].queue
            blocks = threads.get(other, 0) != threads.get(action.queue, 0) or (action.queue.host and not other.host)
            most = max(most, hops[j] + blocks)
            readers[j].append(i)
        hops.append(most)
        missing.append(len(before))
    ready = [(hops[i], actions[i].queue.host, i) for i, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        *_, i = heappop(ready)
        order.append(i)
        for j in readers[i]:
            missing[j] -= 1
            if not missing[j]:
                heappush(ready, (hops[j], actions[j].queue.host, j))
    return order
