"""Reducing kernels for short rows that lie one after the other: as many rows at once as a vector has lanes.

As many whole vectors as a row has elements hold that many rows, so no lane is idle while the elements are computed.
Then neighbours are combined by halves while the rows are even, and what is left is brought into columns, in registers.
An operand may be one row for all: its vectors are the same throughout.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tenferro_cpu.native.kernels._combine import Combiner, Found, State
from tenferro_cpu.native.kernels._render import Row, require_rendered
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.memory._memory import Port, load_fixed, store
from tenferro_cpu.native.operations._emit import Block, Vec
from tenferro_cpu.native.operations._value import Pair, Value, kind_of
from tenferro_tensor.device_model import KernelIR


class Short(NamedTuple):
    """Short rows.

    Attributes:
        length: elements of a row.
        repeated: for each input whether it is one row, the same for all rows.
    """

    length: int
    repeated: tuple[bool, ...]


def render_short(kernel: KernelIR, name: str, host: Host, short: Short) -> str:
    """LLVM text of ``void(ptr data, i64 n, ptr strides, i64 m, ptr rows)``: `n` short rows.

    Operands are contiguous, fixed or repeated. With fewer rows than lanes, rows before the first one are read and
    written as well: pieces of a longer array may be cut anywhere, but that many rows there must be.
    """
    assert kernel.reduction is not None
    require_rendered(kernel, host)
    row = Row(kernel, host)
    b, lanes, width, length = row.block, row.block.lanes, row.width, short.length
    parts = [Combiner(b, kernel.reduction.kind, kernel.dtypes[i]) for i in kernel.outputs]
    b.begin("entry")
    row.open()
    b.do("%some = icmp sgt i64 %n, 0")
    b.do("br i1 %some, label %start, label %done")
    b.begin("start")
    row.fix()
    repeated = {n: _tiled(b, port, length) for n, port in enumerate(row.inputs) if short.repeated[n]}
    b.do(f"%last = sub i64 %n, {lanes}")
    b.do("br label %loop")
    b.begin("loop")
    b.do("%i = phi i64 [ 0, %start ], [ %i.next, %LATCH1 ]")
    b.do("%over = icmp sgt i64 %i, %last")
    b.do("%first = select i1 %over, i64 %last, i64 %i")
    b.do(f"%from = mul i64 %first, {length}")
    columns: list[list[State]] = [[] for _ in parts]
    for k in range(0, length, width):
        starts = [b.raw(f"add i64 %from, {j * lanes}") for j in range(k, min(k + width, length))]
        b.interleave = len(starts)
        known = {n: _value(b, row.inputs[n], vectors[k : k + len(starts)]) for n, vectors in repeated.items()}
        for states, part, value in zip(columns, parts, row.read(starts, known=known)):
            states += _apart(part, value)
    b.interleave = 1
    for port, part, states in zip(row.outputs, parts, columns):
        total = _combined(part, states)
        assert not isinstance(total, Found)
        store(b, port, ["%first"], total)
    b.do(f"%i.next = add i64 %i, {lanes}")
    b.do("%more = icmp slt i64 %i.next, %n")
    b.do("br i1 %more, label %loop, label %done")
    row.patch("%LATCH1", f"%{b.label}")
    b.begin("done")
    b.do("ret void")
    head = f"define void @{name}(ptr %data, i64 %n, ptr %strides, i64 %m, ptr %rows) {host.attributes} {{"
    return row.module.text(head, *b.lines, "}")


def _tiled(block: Block, port: Port, length: int) -> list[tuple[str, ...]]:
    """The vectors of a row that is repeated, as the names of their parts."""
    lanes, size = block.lanes, port.operand.dtype.itemsize
    elements = [
        load_fixed(block, replace(port, pointer=block.raw(f"getelementptr i8, ptr {port.pointer}, i64 {n * size}")))
        for n in range(length)
    ]
    return [
        tuple(
            _blended(block, kind_of(port.operand.dtype), names, [(k * lanes + lane) % length for lane in range(lanes)])
            for names in zip(*elements)
        )
        for k in range(length)
    ]


def _blended(block: Block, kind: str, vectors: Sequence[str], places: Sequence[int]) -> str:
    """A vector whose lane is that of the vector at its place."""
    v = block.vector(kind)
    found = vectors[places[0]]
    for n in sorted(set(places) - {places[0]}):
        mask = ", ".join(f"i1 {'true' if place == n else 'false'}" for place in places)
        found = block.raw(f"select <{block.lanes} x i1> <{mask}>, {v} {vectors[n]}, {v} {found}")
    return found


def _value(block: Block, port: Port, vectors: Sequence[tuple[str, ...]]) -> Value:
    """Interleaved vectors as a value."""
    parts = [Vec(block, kind_of(port.operand.dtype), tuple(names)) for names in zip(*vectors)]
    return Pair(*parts) if port.cplx else parts[0]


def _apart(part: Combiner, value: Value) -> list[State]:
    """Interleaved vectors one by one."""
    vectors = part.split(value)
    return [part.join(*(Vec(part.block, x.kind, (x.names[u],)) for x in vectors)) for u in range(len(vectors[0].names))]


def _combined(part: Combiner, states: list[State]) -> State:
    """One vector of rows from vectors of their elements in order."""
    lanes = part.block.lanes
    while len(states) % 2 == 0:
        even, odd = list(range(0, 2 * lanes, 2)), list(range(1, 2 * lanes, 2))
        pairs = list(zip(states[::2], states[1::2]))
        states = [part.combine(_picked(part, pair, even), _picked(part, pair, odd)) for pair in pairs]
    length = len(states)
    if length > 1:
        states = [_picked(part, states, range(j, length * lanes, length)) for j in range(length)]
    while len(states) > 1:
        joined = [part.combine(x, y) for x, y in zip(states[::2], states[1::2])]
        states = joined + states[2 * len(joined) :]
    return states[0]


def _picked(part: Combiner, states: Sequence[State], places: Sequence[int]) -> State:
    """The elements of several vectors at these places of their concatenation."""
    return part.join(*(_gathered(column, places) for column in zip(*map(part.split, states))))


def _gathered(vectors: Sequence[Vec], places: Sequence[int]) -> Vec:
    b, kind = vectors[0].block, vectors[0].kind
    v, lanes = b.vector(kind), b.lanes
    name, order = vectors[0].names[0], [p if p < lanes else -1 for p in places]
    for k, vector in enumerate(vectors[1:], 1):
        inside = [p // lanes == k for p in places]
        if any(inside):
            order = [lanes + p % lanes if here else o for p, here, o in zip(places, inside, order)]
            mask = ", ".join("i32 poison" if o < 0 else f"i32 {o}" for o in order)
            name = b.raw(f"shufflevector {v} {name}, {v} {vector.names[0]}, <{lanes} x i32> <{mask}>")
            order = [i if p // lanes <= k else -1 for i, p in enumerate(places)]
    return Vec(b, kind, (name,))
