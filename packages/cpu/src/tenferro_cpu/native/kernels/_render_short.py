"""Reducing kernels for contiguous short rows: as many rows at once as a vector has lanes.

A number of whole vectors equal to the length of a row holds that many rows, so no lane is idle in the element-wise
part. Then neighbours are combined by halves while the row length is even, and the remainder is arranged in columns, in
registers. An operand may be one row for all: its vectors are the same throughout.
"""

from collections.abc import Sequence

from tenferro_cpu.native.builder import Block, Branch, DoLoop, Vec
from tenferro_cpu.native.kernels._combine import Combiner, Found, State
from tenferro_cpu.native.kernels._forms import Short
from tenferro_cpu.native.kernels._ports import Port, load_fixed, store
from tenferro_cpu.native.kernels._render import Row, require_rendered
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.operations._value import Pair, Value
from tenferro_tensor.device_model import KernelIR


def render_short(kernel: KernelIR, name: str, host: Host, short: Short) -> str:
    """LLVM text of ``void(ptr data, i64 n, ptr strides, i64 m, ptr rows)``: `n` short rows.

    Operands are contiguous, fixed or repeated. With fewer rows than lanes, rows before the first one are read and
    written as well: chunks of a longer array may be cut anywhere, but that many rows must exist there.
    """
    assert kernel.reduction is not None
    require_rendered(kernel, host)
    row = Row(kernel, host)
    b, n, lanes, length = row.block, row.length, row.block.lanes, short.length
    parts = [Combiner(b, kernel.reduction.kind, kernel.dtypes[i]) for i in kernel.outputs]
    with Branch(b, n > 0):
        row.fix()
        repeated = {k: _tiled(b, port, length) for k, port in enumerate(row.inputs) if short.repeated[k]}
        last = n - lanes
        with DoLoop(b, 0, n, lanes) as rows:
            first = (rows.index > last).choose(last, rows.index)
            start = first * length
            columns: list[list[State]] = [[] for _ in parts]
            for k in range(0, length, row.width):
                starts = [start + j * lanes for j in range(k, min(k + row.width, length))]
                b.interleave = len(starts)
                known = {i: _value(b, row.inputs[i], vectors[k : k + len(starts)]) for i, vectors in repeated.items()}
                for states, part, value in zip(columns, parts, row.read(starts, known=known)):
                    states += [part.join(*(x.one(u) for x in part.split(value))) for u in range(b.interleave)]
            b.interleave = 1
            for port, part, states in zip(row.outputs, parts, columns):
                total = _combined(part, states)
                assert not isinstance(total, Found)
                store(b, port, [first], total)
    return row.text(name, ", i64 %m, ptr %rows")


def _tiled(block: Block, port: Port, length: int) -> list[tuple[Vec, ...]]:
    """The vectors of a repeated row, by part."""
    lanes, size = block.lanes, port.operand.dtype.itemsize
    elements = [load_fixed(block, port.moved(n * size)) for n in range(length)]
    return [
        tuple(
            _blended(block, vectors, [(k * lanes + lane) % length for lane in range(lanes)])
            for vectors in zip(*elements)
        )
        for k in range(length)
    ]


def _blended(block: Block, vectors: Sequence[Vec], places: Sequence[int]) -> Vec:
    """A vector whose lanes are taken from the vectors at the given indices."""
    found = vectors[places[0]]
    for n in sorted(set(places) - {places[0]}):
        found = block.chosen([place == n for place in places], vectors[n], found)
    return found


def _value(block: Block, port: Port, vectors: Sequence[tuple[Vec, ...]]) -> Value:
    """Interleaved vectors as a value."""
    parts = [Vec(block, port.kind, tuple([x.names[0] for x in column])) for column in zip(*vectors)]
    return Pair(*parts) if port.cplx else parts[0]


def _combined(part: Combiner, states: list[State]) -> State:
    """Combine vectors of consecutive elements into one vector of rows."""
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
    """The elements at these positions of the concatenation of several vectors."""
    return part.join(*(_gathered(column, places) for column in zip(*map(part.split, states))))


def _gathered(vectors: Sequence[Vec], places: Sequence[int]) -> Vec:
    lanes = vectors[0].block.lanes
    found, order = vectors[0], [p if p < lanes else -1 for p in places]
    for k, vector in enumerate(vectors[1:], 1):
        inside = [p // lanes == k for p in places]
        if any(inside):
            order = [lanes + p % lanes if here else o for p, here, o in zip(places, inside, order)]
            found = found.block.shuffled(found, order, vector)
            order = [i if p // lanes <= k else -1 for i, p in enumerate(places)]
    return found
