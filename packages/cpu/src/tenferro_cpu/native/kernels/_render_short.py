"""Reducing kernels for short rows that lie one after the other: as many rows at once as a vector has lanes.

`m` whole vectors hold that many rows, so no lane is idle while the elements are computed. Then neighbours are combined
by halves while the rows are even, and what is left is brought into columns, in registers.
"""

from collections.abc import Sequence

from tenferro_cpu.native.kernels._combine import Combiner, Found, State
from tenferro_cpu.native.kernels._render import Row, require_rendered
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.memory._memory import store
from tenferro_cpu.native.operations._emit import Vec
from tenferro_cpu.native.operations._value import Value
from tenferro_tensor.device_model import KernelIR


def render_short(kernel: KernelIR, name: str, host: Host, length: int) -> str:
    """LLVM text of ``void(ptr data, i64 n, ptr strides, i64 m, ptr rows)``: `n` rows of `length` elements each.

    Operands are contiguous or fixed. With fewer rows than lanes, rows before the first one are read and written as
    well: pieces of a longer array may be cut anywhere, but that many rows there must be.
    """
    assert kernel.reduction is not None
    require_rendered(kernel, host)
    row = Row(kernel, host)
    b, lanes, width = row.block, row.block.lanes, row.width
    parts = [Combiner(b, kernel.reduction.kind, kernel.dtypes[i]) for i in kernel.outputs]
    b.begin("entry")
    row.open()
    b.do("%some = icmp sgt i64 %n, 0")
    b.do("br i1 %some, label %start, label %done")
    b.begin("start")
    row.fix()
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
        for states, part, value in zip(columns, parts, row.read(starts)):
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
