"""`GroupWriter`: statements of `LoopIR` as C that the work items of a group run together.

All of them compute the same registers; the first one stores. They share the iterations of parallel loops; carries of
grouped loops are combined by halving in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenferro_gpu.rendering._expressions import Expressions
from tenferro_gpu.rendering._functions import TYPES
from tenferro_gpu.rendering._item_writer import ItemWriter
from tenferro_gpu.rendering._loops import chain, parallel_work
from tenferro_tensor.loop_ir import (
    Carried,
    Case,
    For,
    Order,
    Role,
    Statement,
    Store,
    Switch,
    While,
    accumulation,
    touches,
)

BLOCK: Final = 256
"""Work items per group; a power of two, as required by halving."""

MIN_SHARED_WORK: Final = 32
"""Minimum iterations of a loop shared among work items; each runs shorter loops itself if they store nothing."""

READ_ONLY: Final = (Role.INPUT, Role.CONSTANT)


class GroupWriter(ItemWriter):
    """Writes statements for a group.

    Barriers order memory accesses of different work items. Buffers may share memory, so a barrier separates any two
    statements of which one writes memory and the other accesses it.

    Attributes:
        shared: names of arrays in shared memory, with their types.
    """

    def __init__(self, expressions: Expressions, lines: list[str], depth: int = 1) -> None:
        super().__init__(expressions, lines, depth)
        self.shared: dict[str, str] = {}
        self._touched = self._wrote = self._loop_writes = False

    def barrier(self) -> None:
        """Wait for all work items of the group."""
        self.line("__syncthreads();")
        self._touched = self._wrote = False

    def _meet(self, statements: Sequence[Statement]) -> None:
        """Order statements after the previous ones."""
        touched, wrote = _memory(statements)
        if (wrote and self._touched) or (touched and self._wrote):
            self.barrier()
        self._touched |= touched
        self._wrote |= wrote

    def statement(self, s: Statement) -> None:
        """Write one statement, ordered after the previous ones."""
        if isinstance(s, While | Switch) or (isinstance(s, For) and not self._is_shared(s)):
            self._compound(s)
            return
        self._meet([s])
        if isinstance(s, For):
            self.share(s)
        elif isinstance(s, Store):
            with self.block("if (threadIdx.x == 0)"):
                super().statement(s)
        else:
            super().statement(s)

    def _compound(self, s: Statement) -> None:
        touched, wrote = _memory([s])
        if touched and (self._touched or self._wrote):
            self.barrier()
        before = self._touched or touched, self._wrote or wrote, self._loop_writes
        self._touched, self._wrote, self._loop_writes = False, False, wrote
        super().statement(s)
        self._touched, self._wrote, self._loop_writes = before

    def _is_shared(self, s: For) -> bool:
        if s.order is Order.GIVEN:
            return False
        work = parallel_work([s])
        return work is None or work > MIN_SHARED_WORK or _memory([s])[1]

    def next(self, carries: Sequence[Carried]) -> None:
        """Like `ItemWriter.next`; the next iteration comes after this one."""
        super().next(carries)
        if self._loop_writes and (self._touched or self._wrote):
            self.barrier()

    def case(self, s: Switch, case: Case) -> None:
        """Like `ItemWriter.case`."""
        self._touched = self._wrote = False
        super().case(s, case)

    # -- shared loops

    def share(self, s: For) -> None:
        """Share the iterations of a parallel or grouped loop."""
        self.partial(s, "threadIdx.x", "blockDim.x")
        if s.carries:
            self.join(s)

    def partial(self, s: For, start: str, step: str) -> None:
        """The iterations of one work item."""
        axes, inner = chain(s)
        self.begin_parts(s)
        item = ItemWriter(self.expressions, self.lines, self.depth)
        with item.over(axes, start, step, f"k{s.index.number}"):
            item.enter(inner.carries)
            item.write(inner.body)
            item.next(inner.carries)

    def accumulates(self, c: Carried, loop: For) -> str:
        """Name of the op by which a carry of the last loop of a chain accumulates; empty if it does not."""
        op = accumulation(c, chain(loop)[1].body)
        return "" if op is None else op.primitive.name

    def begin_parts(self, s: For) -> None:
        """Declare the variables of the carries of a grouped loop, with the initial values of a work item."""
        inner, firsts = chain(s)[1], []
        for outer, c in zip(s.carries, inner.carries, strict=True):
            name = self.accumulates(c, s)
            neutral = f"tf_none_{name}<{TYPES[c.inside.dtype.name]}>()"
            firsts.append(neutral if name else self.expressions.value(outer.first))
        self.begin(inner.carries, firsts)

    def join(self, s: For) -> None:
        """The results of a loop, combined from the carries of all work items."""
        self.halve(s)
        for k, (outer, c) in enumerate(zip(s.carries, chain(s)[1].carries, strict=True)):
            name, first = self.accumulates(c, s), self.expressions.value(outer.first)
            self.set(outer.result, f"tf_{name}({first}, {self.array(k, c)}[0])" if name else first)
        self.barrier()  # the next loop reuses the arrays

    def halve(self, s: For) -> None:
        """Combine the values of work items by halving into the first elements of arrays in shared memory."""
        names = [(k, c, self.accumulates(c, s)) for k, c in enumerate(chain(s)[1].carries)]
        joined = [(c, self.array(k, c), name) for k, c, name in names if name]
        for c, array, _ in joined:
            self.line(f"{array}[threadIdx.x] = c{c.inside.number};")
        self.barrier()
        with self.block("for (int half = blockDim.x / 2; half; half /= 2)"):
            with self.block("if (threadIdx.x < half)"):
                for _, array, name in joined:
                    self.line(f"{array}[threadIdx.x] = tf_{name}({array}[threadIdx.x], {array}[threadIdx.x + half]);")
            self.barrier()

    def array(self, k: int, c: Carried) -> str:
        """Name of an array in shared memory, with an element per work item."""
        name = f"shared_{c.inside.dtype.name}_{k}"
        self.shared[name] = TYPES[c.inside.dtype.name]
        return name

    def shared_bytes(self) -> int:
        """Bytes of all arrays in shared memory."""
        return BLOCK * sum([SHARED_BYTES[name] for name in self.shared.values()])


SHARED_BYTES: Final = {
    "bool": 1, "signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2, "int": 4, "unsigned int": 4,
    "float": 4, "long long": 8, "unsigned long long": 8, "double": 8, "tf_c8": 8, "tf_c16": 16,
}  # fmt: skip
"""Bytes of each type."""


def _memory(statements: Sequence[Statement]) -> tuple[bool, bool]:
    """Whether statements access memory that the function writes, and whether they write any."""
    found = list(touches(statements))
    return any(t.buffer.role not in READ_ONLY for t in found), any(t.writes for t in found)
