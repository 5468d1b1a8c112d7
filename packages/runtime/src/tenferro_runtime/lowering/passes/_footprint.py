"""`Footprint`: the effects of a statement and its bodies, computed once."""

from __future__ import annotations

from collections import defaultdict

from tenferro_runtime.lowering.passes._contents import changed, hands_on, mentioned, reads, sets
from tenferro_tensor.loop_ir import Affine, For, Load, Statement, Store, Switch, While, blocks

Footprints = dict[int, tuple[Statement, "Footprint"]]
"""Known footprints, by identity of the statement."""


def footprint(s: Statement, known: Footprints) -> Footprint:
    """The footprint of a statement; cached, because fused loops share most statements with the original ones."""
    found = known.get(id(s))
    if found is None:
        found = known[id(s)] = s, Footprint(s, known)
    return found[1]


class Footprint:
    """The effects of a statement and its bodies.

    Attributes:
        sets: numbers of the registers that it sets for other statements.
        reads: numbers of the registers that it reads.
        inside: numbers of the registers that are set in its bodies.
        loads: addresses that it loads from, by number of the buffer.
        stores: addresses that it stores to, by number of the buffer.
        reads_memory: numbers of the buffers that it reads.
        changes: numbers of the buffers that it writes to or swaps.
        regular: whether it consists only of loads, stores, numbers and counted loops.
        branches: whether it has branches.
        lines: number of statements.
    """

    def __init__(self, s: Statement, known: Footprints) -> None:
        self.sets = {reg.number for reg in sets(s)}
        self.reads = {reg.number for reg in reads(s)}
        self.inside: set[int] = set()
        self.loads: dict[int, list[Affine]] = defaultdict(list)
        self.stores: dict[int, list[Affine]] = defaultdict(list)
        self.changes = {b.number for b in changed(s)}
        self.reads_memory = {b.number for b in mentioned(s)}
        self.regular, self.branches, self.lines = True, isinstance(s, Switch), 1
        match s:
            case Load(buffer=buffer, at=at):
                self.loads[buffer.number].append(at)
            case Store(buffer=buffer, at=at):
                self.stores[buffer.number].append(at)
                self.reads_memory = set()
            case For() | While():
                self.regular = isinstance(s, For) and not s.swaps
                self.inside |= {s.index.number, *[c.inside.number for c in s.carries]}
        bodies = blocks(s)
        for t in [t for body in bodies for t in body]:
            self._include(footprint(t, known))
        if bodies:
            self.reads |= {reg.number for reg in hands_on(s)}
        elif not isinstance(s, Load | Store) and self.reads_memory:
            self.regular = False

    def _include(self, other: Footprint) -> None:
        self.reads |= other.reads
        self.inside |= other.inside | other.sets
        for mine, its in ((self.loads, other.loads), (self.stores, other.stores)):
            for number, places in its.items():
                mine[number].extend(places)
        self.changes |= other.changes
        self.reads_memory |= other.reads_memory
        self.regular, self.branches = self.regular and other.regular, self.branches or other.branches
        self.lines += other.lines

    @property
    def buffers(self) -> set[int]:
        """Numbers of the buffers that it reads or changes."""
        return self.changes | self.reads_memory

    def commutes_with(self, other: Footprint) -> bool:
        """Whether two statements may be exchanged."""
        return (
            not (self.changes & other.buffers or other.changes & self.reads_memory)
            and self.sets.isdisjoint(other.reads)
            and other.sets.isdisjoint(self.reads)
        )
