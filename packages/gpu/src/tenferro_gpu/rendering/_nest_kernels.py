"""`NestKernel`: statements of a program as one kernel, and its source text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from tenferro_gpu.rendering._expressions import INDEX_TYPE, Expressions
from tenferro_gpu.rendering._functions import TYPES
from tenferro_gpu.rendering._group_writer import BLOCK, READ_ONLY
from tenferro_gpu.rendering._item_writer import ItemWriter
from tenferro_gpu.rendering._loops import Axes, chain
from tenferro_gpu.rendering._parts_writer import PartsWriter
from tenferro_tensor.loop_ir import Buffer, For, Reg, Statement, Value, everything, reads, registers
from tenferro_tensor_core import UnsupportedError

MAX_SHARED_BYTES: Final = 48 << 10
"""Shared memory of one group in bytes."""


MAX_ARGUMENTS: Final = 500
"""Maximum number of arguments of a kernel, 8 bytes each; old drivers accept 4 KiB."""

_ITEM: Final = f"({INDEX_TYPE})blockIdx.x * blockDim.x + threadIdx.x"
"""Index of a work item."""


class Sharing(Enum):
    """Which work items run a nest."""

    ITEMS = "items"
    """One work item runs an iteration of the outer loops."""
    GROUPS = "groups"
    """A group of work items does."""
    PARTS = "parts"
    """Several groups do: each runs a part of one grouped loop up to there, and leaves its part of the carries."""
    ONE = "one"
    """One group runs all statements in order."""


@dataclass(frozen=True, slots=True)
class NestKernel:
    """One kernel.

    Its arguments are the buffers, the values of all sizes, the counters, then if present the memory of numbers, the
    memory of parts, and the number of parts.

    Attributes:
        entry: its name.
        sharing: which work items run it.
        before: statements that every work item runs first; they store nothing.
        body: the nest; for ONE any statements.
        split: the loop whose parts are run by different groups, or whose parts are combined.
        buffers: buffers that it accesses.
        sizes: names of the symbolic sizes.
        counters: registers that the host knows.
        takes: registers set by other kernels, with their offsets.
        gives: values that it leaves for other kernels, with their offsets.
    """

    entry: str
    sharing: Sharing
    before: tuple[Statement, ...]
    body: tuple[Statement, ...]
    split: For | None
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
        return self.split is not None

    @property
    def parts(self) -> int:
        """Numbers per part."""
        return 0 if self.split is None else len(self.split.carries)

    def text(self) -> str:
        """The function.

        Raises:
            UnsupportedError: an op has no form in a kernel, or a group would share too much memory.
        """
        lines: list[str] = []
        expressions = Expressions(self.sizes, self._unread())
        writer = PartsWriter(expressions, lines, self.split, self.sharing is Sharing.PARTS)
        for reg, place in self.takes:
            writer.set(reg, _number(reg, place))
        items = ItemWriter(expressions, lines)
        items.write(self.before)
        if self.sharing is Sharing.ONE:
            writer.write(self.body)
            if self.gives:
                writer.barrier()  # numbers to be replaced have been read
        elif self.sharing is Sharing.ITEMS:
            axes, inner = self._nest()
            items.line(f"const {INDEX_TYPE} start = {_ITEM};")
            items.line(f"const {INDEX_TYPE} step = ({INDEX_TYPE})gridDim.x * blockDim.x;")
            with items.over(axes, "start", "step", self._counter):
                items.write(inner.body)
        else:
            self._write_groups(writer)
        if self.gives:
            with writer.block(f"if ({_ITEM} == 0)"):
                for value, place in self.gives:
                    writer.line(f"{_number(value, place)} = {expressions.value(value)};")
        if writer.shared_bytes() > MAX_SHARED_BYTES:
            raise UnsupportedError("the carries of a loop do not fit the shared memory of a group")
        head = f'extern "C" __global__ void __launch_bounds__({BLOCK}) {self.entry}('
        given = self._arguments()
        if len(given) > MAX_ARGUMENTS:
            raise UnsupportedError(f"a kernel would have {len(given)} arguments, more than {MAX_ARGUMENTS}")
        arguments = f"    {', '.join(given)})"
        arrays = [f"    __shared__ {name} {array}[{BLOCK}];" for array, name in writer.shared.items()]
        return "\n".join([head, arguments, "{", *arrays, *lines, "}", ""])

    def _unread(self) -> frozenset[int]:
        """Registers that the statements set and nothing reads."""
        own = [*everything((*self.before, *self.body, *([] if self.split is None else [self.split])))]
        read = {reg.number for s in own for reg in reads(s)}
        read |= {value.number for value, _ in self.gives if isinstance(value, Reg)}
        return frozenset([reg.number for s in own for reg in registers(s)]) - read

    def _nest(self) -> tuple[Axes, For]:
        (nest,) = self.body
        assert isinstance(nest, For)
        return chain(nest)

    @property
    def _counter(self) -> str:
        """The flattened counter of all outer loops."""
        axes, _ = self._nest()
        return f"r{axes[0][0].number}" if len(axes) == 1 else f"k{axes[0][0].number}"

    def _write_groups(self, writer: PartsWriter) -> None:
        """One group per iteration of the outer loops, or one per part."""
        over = " / parts" if self.sharing is Sharing.PARTS else ""
        if over:
            writer.line("const int part = blockIdx.x % parts;")
        if self.body[0] is self.split:
            writer.leave(self.split)
            return
        axes, inner = self._nest()
        writer.row = self._counter
        first, step = (f"({INDEX_TYPE}){of}.x{over}" for of in ("blockIdx", "gridDim"))
        with writer.over(axes, first, step, self._counter):
            (writer.until_split if over else writer.write)(inner.body)

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
