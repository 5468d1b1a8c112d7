"""`NestKernel`: statements of a program as one kernel, and its text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from tenferro_gpu.rendering._expressions import INDEX_TYPE, Expressions
from tenferro_gpu.rendering._functions import TYPES
from tenferro_gpu.rendering._group_writer import BLOCK, READ_ONLY, GroupWriter
from tenferro_gpu.rendering._item_writer import ItemWriter
from tenferro_gpu.rendering._loops import chain
from tenferro_tensor.loop_ir import Buffer, For, Reg, Statement, Value
from tenferro_tensor_core import UnsupportedError

SLOT: Final = 16
"""Bytes of a number that kernels leave for each other."""

MAX_PARTS: Final = 512
"""Groups among which one reduction is shared; so many keep a large device busy."""

MAX_SHARED_BYTES: Final = 48 << 10
"""Bytes that the work items of one group may share."""


class Sharing(Enum):
    """Which work items run a nest."""

    ITEMS = "items"
    """One work item runs an iteration of the outer loops."""
    GROUPS = "groups"
    """A group of work items does."""
    PARTS = "parts"
    """All groups share one grouped loop; each leaves its part of the carries."""
    ONE = "one"
    """One group runs all statements in order."""


@dataclass(frozen=True, slots=True)
class NestKernel:
    """One kernel.

    Its arguments are the buffers, the values of all sizes, the counters, then where there are any the memory of
    numbers, the memory of parts, and the number of parts.

    Attributes:
        entry: its name.
        sharing: which work items run it.
        before: statements that every work item runs first; they store nothing.
        body: the nest; of ONE any statements.
        joins: the loop of which the parts are joined first.
        buffers: what it touches.
        sizes: names of the symbolic sizes.
        counters: registers that the host knows.
        takes: registers that other kernels have set, with their places.
        gives: values that it leaves for other kernels, with their places.
    """

    entry: str
    sharing: Sharing
    before: tuple[Statement, ...]
    body: tuple[Statement, ...]
    joins: For | None
    buffers: tuple[Buffer, ...]
    sizes: tuple[str, ...]
    counters: tuple[Reg, ...]
    takes: tuple[tuple[Reg, int], ...]
    gives: tuple[tuple[Value, int], ...]

    @property
    def takes_numbers(self) -> bool:
        """Whether the memory of numbers is an argument."""
        return bool(self.takes or self.gives)

    @property
    def takes_parts(self) -> bool:
        """Whether the memory of parts and their number are arguments."""
        return self.joins is not None or self.sharing is Sharing.PARTS

    @property
    def parts(self) -> int:
        """Numbers of each part."""
        (nest,) = self.body if self.sharing is Sharing.PARTS else (None,)
        return len(nest.carries) if isinstance(nest, For) else 0

    def text(self) -> str:
        """The function.

        Raises:
            UnsupportedError: an op has no form in a kernel, or a group would share too much memory.
        """
        lines: list[str] = []
        expressions = Expressions(self.sizes)
        writer = GroupWriter(expressions, lines)
        for reg, place in self.takes:
            writer.set(reg, _number(reg, place))
        start = f"({INDEX_TYPE})blockIdx.x * blockDim.x + threadIdx.x"
        step = f"({INDEX_TYPE})gridDim.x * blockDim.x"
        items = ItemWriter(expressions, lines)
        items.write(self.before)
        if self.sharing is Sharing.ONE:
            if self.joins is not None:
                _join_parts(writer, self.joins)
            writer.write(self.body)
            if self.gives:
                writer.barrier()  # numbers that are replaced have been read
        else:
            (nest,) = self.body
            assert isinstance(nest, For)
            axes, inner = chain(nest)
            if self.sharing is Sharing.PARTS:
                writer.partial(nest, start, step)
                _leave_parts(writer, nest)
            elif self.sharing is Sharing.ITEMS:
                with items.over(axes, start, step, f"k{nest.index.number}"):
                    items.write(inner.body)
            else:
                groups = f"({INDEX_TYPE})"
                with writer.over(axes, f"{groups}blockIdx.x", f"{groups}gridDim.x", f"k{nest.index.number}"):
                    writer.write(inner.body)
        if self.gives:
            with writer.block(f"if ({start} == 0)"):
                for value, place in self.gives:
                    writer.line(f"{_number(value, place)} = {expressions.value(value)};")
        if writer.shared_bytes() > MAX_SHARED_BYTES:
            raise UnsupportedError("the carries of a loop do not fit the shared memory of a group")
        head = f'extern "C" __global__ void __launch_bounds__({BLOCK}) {self.entry}('
        arguments = f"    {', '.join(self._arguments())})"
        arrays = [f"    __shared__ {name} {array}[{BLOCK}];" for array, name in writer.shared.items()]
        return "\n".join([head, arguments, "{", *arrays, *lines, "}", ""])

    def _arguments(self) -> list[str]:
        found = []
        for b in self.buffers:
            only = b.role in READ_ONLY
            name = TYPES[b.dtype.name]
            found.append(f"const {name}* __restrict__ {b}" if only else f"{name}* {b}")
        found += [f"{INDEX_TYPE} n{k}" for k in range(len(self.sizes))]
        found += [f"{INDEX_TYPE} r{reg.number}" for reg in self.counters]
        found += ["char* numbers"] * self.takes_numbers
        found += ["char* all_parts", f"{INDEX_TYPE} parts"] * self.takes_parts
        return found


def _number(value: Value, place: int) -> str:
    return f"*({TYPES[value.dtype.name]}*)(numbers + {place})"


def _part(k: int, dtype: str, part: str) -> str:
    return f"*({TYPES[dtype]}*)(all_parts + ({k * MAX_PARTS} + {part}) * {SLOT})"


def _leave_parts(writer: GroupWriter, nest: For) -> None:
    writer.halve(nest)
    with writer.block("if (threadIdx.x == 0)"):
        for k, c in enumerate(chain(nest)[1].carries):
            if writer.accumulates(c, nest):
                writer.line(f"{_part(k, c.inside.dtype.name, 'blockIdx.x')} = {writer.array(k, c)}[0];")


def _join_parts(writer: GroupWriter, nest: For) -> None:
    inner = chain(nest)[1]
    writer.begin_parts(nest)
    with writer.block(f"for ({INDEX_TYPE} part = threadIdx.x; part < parts; part += blockDim.x)"):
        for k, c in enumerate(inner.carries):
            name = writer.accumulates(c, nest)
            if name:
                own = f"c{c.inside.number}"
                writer.line(f"{own} = tf_{name}({own}, {_part(k, c.inside.dtype.name, 'part')});")
    writer.join(nest)
