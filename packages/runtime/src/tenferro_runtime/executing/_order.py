"""The order in which actions are done: streams are fed early, and what waits for another thread comes late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from tenferro_runtime.executing._moves import Action
from tenferro_runtime.executing._queue import Queue


def ordered(actions: Sequence[Action], threads: Mapping[Queue, int]) -> list[int]:
    """Numbers of the actions in an order that respects their operands.

    First come those that need the fewest hand-overs between threads before them, so that a thread does what it can do
    alone before it waits. Among these, what is merely issued to a stream goes before what keeps the thread busy, and
    the order of the source decides the rest.

    Args:
        actions: the actions, each after those that make its operands.
        threads: number of the thread for each queue that is one; the others are issued by thread 0.
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
