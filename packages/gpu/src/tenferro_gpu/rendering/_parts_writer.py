"""`PartsWriter`: one grouped loop shared among groups, each of which stores its part of the carries in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenferro_gpu.rendering._expressions import INDEX_TYPE, Expressions
from tenferro_gpu.rendering._functions import TYPES
from tenferro_gpu.rendering._group_writer import GroupWriter
from tenferro_gpu.rendering._loops import chain
from tenferro_tensor.loop_ir import For, Statement

SLOT: Final = 16
"""Bytes of a number that kernels pass to each other."""

MAX_PARTS: Final = 512
"""Maximum number of groups that share a reduction; enough to occupy a large device."""


class PartsWriter(GroupWriter):
    """A `GroupWriter` that runs a part of one loop, or combines its parts.

    Args:
        expressions: writes sizes and indices.
        lines: the output.
        split: the loop.
        leaves: whether to store a part of it; otherwise the parts are combined in its place.

    Attributes:
        row: index of the current iteration of the surrounding loops.
    """

    def __init__(self, expressions: Expressions, lines: list[str], split: For | None, leaves: bool) -> None:
        super().__init__(expressions, lines)
        self.split, self.leaves, self.row = split, leaves, "0"

    def statement(self, s: Statement) -> None:
        """Write one statement."""
        if s is not self.split:
            super().statement(s)
        elif self.leaves:
            self.leave(s)
        else:
            self.join_parts(s)

    def until_split(self, statements: Sequence[Statement]) -> None:
        """Write statements up to the loop."""
        for s in statements:
            self.statement(s)
            if s is self.split:
                return

    def leave(self, s: For) -> None:
        """Run a part, and store its carries."""
        self.partial(s, f"({INDEX_TYPE})part * blockDim.x + threadIdx.x", "parts * blockDim.x")
        self.halve(s)
        with self.block("if (threadIdx.x == 0)"):
            for k, c in enumerate(chain(s)[1].carries):
                if self.accumulates(c, s):
                    self.line(f"{self._part(k, c.inside.dtype.name)} = {self.array(k, c)}[0];")

    def join_parts(self, s: For) -> None:
        """The results of the loop, from its parts."""
        self.begin_parts(s)
        with self.block(f"for ({INDEX_TYPE} part = threadIdx.x; part < parts; part += blockDim.x)"):
            for k, c in enumerate(chain(s)[1].carries):
                name, own = self.accumulates(c, s), f"c{c.inside.number}"
                if name:
                    self.line(f"{own} = tf_{name}({own}, {self._part(k, c.inside.dtype.name)});")
        self.join(s)

    def _part(self, k: int, dtype: str) -> str:
        return f"*({TYPES[dtype]}*)(all_parts + ({k * MAX_PARTS} + {self.row} * parts + part) * {SLOT})"
