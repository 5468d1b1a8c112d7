"""Minimum cut of a flow network (Dinic, 1970)."""

from __future__ import annotations

from typing import Final

UNBOUNDED: Final = float("inf")
"""Capacity of an edge that no cut crosses."""

_ROUNDING: Final = 1e-9
"""Residual capacities up to this count as zero."""


class FlowNetwork:
    """Nodes numbered from 0 and directed edges with capacities; node 0 is the source, node 1 the sink.

    >>> network = FlowNetwork()
    >>> a, b = network.node(), network.node()
    >>> network.edge(0, a, 3.0)
    >>> network.edge(a, b, 1.0)
    >>> network.edge(b, 1, 2.0)
    >>> sorted(network.source_side())
    [0, 2]
    """

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]  # by node: numbers of edges; number ^ 1 is the edge back
        self._to: list[int] = []
        self._left: list[float] = []

    def node(self) -> int:
        """A new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, a: int, b: int, capacity: float) -> None:
        """An edge from `a` to `b`."""
        self._edges[a].append(len(self._to))
        self._edges[b].append(len(self._to) + 1)
        self._to += [b, a]
        self._left += [capacity, 0.0]

    def source_side(self) -> set[int]:
        """The nodes on the source side of the minimum cut nearest to the source."""
        while True:
            depth = self._depths()
            if depth[1] < 0:
                return {v for v, d in enumerate(depth) if d >= 0}
            self._block(depth)

    def _depths(self) -> list[int]:
        depth = [-1] * len(self._edges)
        depth[0] = 0
        order = [0]
        for v in order:  # grows during the loop
            for e in self._edges[v]:
                if depth[self._to[e]] < 0 and self._left[e] > _ROUNDING:
                    depth[self._to[e]] = depth[v] + 1
                    order.append(self._to[e])
        return depth

    def _block(self, depth: list[int]) -> None:
        """Find a blocking flow: augment along shortest paths until none is left."""
        untried = [0] * len(self._edges)
        path: list[int] = []
        v = 0
        while True:
            if v == 1:
                sent = min([self._left[e] for e in path])
                for e in path:
                    self._left[e] -= sent
                    self._left[e ^ 1] += sent
                full = next(i for i, e in enumerate(path) if self._left[e] <= _ROUNDING)
                v = self._to[path[full] ^ 1]
                del path[full:]
                continue
            edges = self._edges[v]
            while untried[v] < len(edges):
                e = edges[untried[v]]
                if self._left[e] > _ROUNDING and depth[self._to[e]] == depth[v] + 1:
                    break
                untried[v] += 1
            else:
                if not path:
                    return
                v = self._to[path.pop() ^ 1]
                untried[v] += 1
                continue
            path.append(e)
            v = self._to[e]
