"""Layout of the boxes of a graph: in rows by depth, within a row near the middle of the boxes that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_runtime.ir._program import Program


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a graph.

    Attributes:
        index: its number; it reads only boxes with smaller ones.
        kind: kind of the step, input, constant or output.
        label: its text.
        detail: smaller text below.
        note: text of the tooltip.
        reads: boxes that it reads.
        inside: programs that it runs, each with its role.
        where: line of code.
    """

    index: int
    kind: str
    label: str
    detail: str
    note: str = ""
    reads: tuple[int, ...] = ()
    inside: tuple[tuple[str, Program], ...] = ()
    where: str = ""


def placed(nodes: Sequence[Box]) -> tuple[list[tuple[float, int]], int, int]:
    """Column and row of each box, and the numbers of columns and rows."""
    depth: list[int] = []
    sink = [len(nodes)] * len(nodes)
    for n in nodes:
        depth.append(1 + max([depth[r] for r in n.reads], default=-1))
        for r in n.reads:
            sink[r] = min(sink[r], depth[-1])
    for n in nodes:  # boxes that are read late move down to their reader, so that constants are next to their use
        if not n.reads and sink[n.index] < len(nodes):
            depth[n.index] = sink[n.index] - 1
    rows: dict[int, list[Box]] = {}
    for n in nodes:
        rows.setdefault(depth[n.index], []).append(n)
    columns = max(map(len, rows.values()), default=1)
    x = [0.0] * len(nodes)
    for d in sorted(rows):
        row = sorted(rows[d], key=lambda n: (_middle(x, n), n.index))
        start = (columns - len(row)) / 2
        for i, n in enumerate(row):
            x[n.index] = start + i
    return [(x[n.index], depth[n.index]) for n in nodes], columns, max(rows, default=0) + 1


def _middle(x: list[float], n: Box) -> float:
    return sum([x[r] for r in n.reads]) / len(n.reads) if n.reads else float(n.index)
