"""`render_row`: a `LoopFunction` over one row as a function that C code calls for every row of an array.

``void(ptr data, i64 n, ptr strides, i64 m, ptr rows)``: `data` holds one pointer for each buffer, inputs first. The
sizes of the function are among ``n``, the length of the row; ``m``, the number of rows that are combined; ``s0, s1,
...``, strides of the buffers along the row; and ``d0, d1, ...``, their strides from row to row. Sizes are in elements,
the arguments in bytes. Each argument is read only if the function has such a size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.builder import Block, Int, Module, Pointer, ScalarBlock
from tenferro_cpu.native.codegen.operations._ops import apply, rule_for
from tenferro_cpu.native.codegen.whole import _ports as ports
from tenferro_cpu.native.codegen.whole._frame import EntryBlock
from tenferro_cpu.native.codegen.whole._lanes import lanes_of
from tenferro_cpu.native.codegen.whole._sizes import Sizes
from tenferro_cpu.native.codegen.whole._statements import Writer
from tenferro_cpu.native.codegen.whole._vectors import BYTE, VectorLoop
from tenferro_tensor import Op
from tenferro_tensor.loop_ir import For, Let, LoopFunction, Order, everything
from tenferro_tensor_core import UnsupportedError

_TABLES: Final = {"s": "strides", "d": "rows"}
"""The argument that holds sizes of this letter."""


class RowWriter(Writer):
    """The function of a row, all of whose parallel loops are vectors, as wide as the processor's.

    So one op has the same bits in all its functions, and no optimiser has anything to do.
    """

    polls = False
    host: Host
    streams = False

    def for_(self, s: For) -> None:
        """Write a loop."""
        if s.order is Order.GIVEN:
            super().for_(s)
            return
        for each in everything(s.body):
            if isinstance(each, Let):
                self._require(each)
        lanes = lanes_of(s, self.block.fused, combs=True)
        assert lanes is not None
        vectors = VectorLoop(self, s, lanes, self.host, BYTE * self.host.vector_bytes)
        start, end = Int(self.block, "0"), self.size(s.extent)
        if s.carries:
            vectors.reduce(start, end)
        else:
            vectors.write(start, end, past_caches=self.streams)

    def _require(self, s: Let) -> None:
        dtypes = tuple([a.dtype for a in s.args])
        if rule_for(s.op.primitive, dtypes, self.block.fused) is None:
            names = ", ".join([d.name for d in dtypes])
            raise UnsupportedError(
                f"{s.op!r} of {names} has no native form on this CPU; run it on NumPy",
                primitive=s.op.primitive.name,
                dtypes=names,
            )


def render_row(function: LoopFunction, name: str, host: Host, *, stream: bool = False) -> str:
    """LLVM text of a function over one row.

    Args:
        function: the function.
        name: its name.
        host: the processor.
        stream: whether to write past the caches, to outputs aligned to 64 bytes.

    Raises:
        UnsupportedError: an op has no native form on this processor.
    """
    module = Module()
    entry, block = EntryBlock(module), ScalarBlock(module, host.level != "generic", host.tables)
    entry.begin("entry")
    block.begin("body")
    buffers = (*function.inputs, *function.outputs)
    sizes = Sizes(entry, {size: _size(entry, size, function) for size in function.sizes})
    data = Pointer(entry, "%data")
    pointers = {b.number: data.element("ptr", k).load_pointer() for k, b in enumerate(buffers)}
    writer = RowWriter(entry, block, sizes, {k: Pointer(block, p.name) for k, p in pointers.items()}, [])
    writer.host, writer.streams = host, stream
    writer.write(function.body)
    if stream:
        block.fence()
    block.do("ret void")
    entry.jump("body")
    head = f"define void @{name}(ptr %data, i64 %n, ptr %strides, i64 %m, ptr %rows) {host.attributes} {{"
    return module.text(head, *entry.lines, *block.lines, "}")


def _size(entry: EntryBlock, name: str, function: LoopFunction) -> Int:
    """The value of a size."""
    table = _TABLES.get(name[0])
    if table is None:
        return Int(entry, f"%{name}")
    number = int(name[1:])
    buffer = next(b for b in (*function.inputs, *function.outputs) if b.number == number)
    apart = Pointer(entry, f"%{table}").element("i64", number).load_int()
    return Int(entry, entry.raw(f"ashr exact i64 {apart.name}, {buffer.dtype.itemsize.bit_length() - 1}"))


def work(op: Op | None, dtypes: Sequence[np.dtype[Any]], out: np.dtype[Any], lanes: int, host: Host) -> int:
    """Number of instructions for one vector of loads and of an op on them, if there is one."""
    block = Block(Module(), lanes, tables=host.tables)
    values = [ports.load(block, ports.Port(d, Pointer(block, "%p")), [Int(block, "%i")]) for d in dtypes]
    if op is not None:
        apply(block, op, tuple(dtypes), out, *values)
    return len(block.lines)
