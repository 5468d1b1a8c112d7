"""Reducing kernels: one element per row, or rows combined element by element.

Sums are cascades: groups of a few additions, a block of a few groups in several accumulators, then blocks combined like
the digits of a counter. The error grows with the logarithm of the length, with no longer chains than those of NumPy's
pairwise summation, and the order of operations depends on shapes alone.
"""

from collections.abc import Callable
from dataclasses import replace

from tenferro_cpu.native.kernels._combine import LOCATED, Combiner, Found, State
from tenferro_cpu.native.kernels._render import Row, evaluate, require_rendered
from tenferro_cpu.native.machine._host import Host
from tenferro_cpu.native.memory._memory import Port, fixed_value, lane_numbers, load, load_fixed, store
from tenferro_cpu.native.operations._emit import LLVM_TYPES, Vec
from tenferro_cpu.native.operations._value import Value
from tenferro_tensor.device_model import Access, KernelIR, Over

GROUP = 8
"""Rounded additions one after the other, before their result is added to an accumulator."""

BLOCK = 64
"""Elements of one accumulator before it goes to the cascade."""

LEVELS = 48

LINE = 64
"""Bytes that come from memory at once."""

COMBINED = 16
"""Rows that are combined in registers before the result in memory is read, and rows to prefetch."""

GROUPED = 64
"""Rows in place of `COMBINED` where they are added in groups."""


def render_reduction(kernel: KernelIR, name: str, host: Host) -> str:
    """LLVM text of a reducing kernel: ``void(ptr data, i64 n, ptr strides, i64 m, ptr rows)``.

    Over the trailing axis, `n` elements become one, and `m` and `rows` are not read. Over the leading axis, `m` rows
    at the distances `rows` become one of `n` elements; both are at least 1.
    """
    assert kernel.reduction is not None
    require_rendered(kernel, host)
    row = Row(kernel, host)
    parts = [Combiner(row.block, kernel.reduction.kind, kernel.dtypes[i]) for i in kernel.outputs]
    if kernel.reduction.over is Over.TRAILING:
        _trailing(row, parts)
    else:
        _leading(row, parts)
    head = f"define void @{name}(ptr %data, i64 %n, ptr %strides, i64 %m, ptr %rows) {host.attributes} {{"
    return row.module.text(head, *row.block.lines, "}")


def _phis(row: Row, parts: list[Combiner], name: str, before: str, latch: str, start: list[State]) -> list[State]:
    """Accumulators at the head of a loop, called ``%name.output.vector.lane``."""
    b = row.block
    states = []
    for k, (part, first) in enumerate(zip(parts, start)):
        vectors = []
        for j, x in enumerate(part.split(first)):
            names = []
            for u, value in enumerate(x.names):
                this = f"%{name}.{k}.{j}.{u}"
                b.do(f"{this} = phi {b.vector(x.kind)} [ {value}, %{before} ], [ {this}.next, %{latch} ]")
                names.append(this)
            vectors.append(Vec(b, x.kind, tuple(names)))
        states.append(part.join(*vectors))
    return states


def _close(row: Row, parts: list[Combiner], name: str, states: list[State]) -> None:
    """Name the accumulators of the next turn; LLVM has no copy, and this one costs nothing."""
    b = row.block
    for k, (part, state) in enumerate(zip(parts, states)):
        for j, x in enumerate(part.split(state)):
            for u, value in enumerate(x.names):
                v = b.vector(x.kind)
                b.do(f"%{name}.{k}.{j}.{u}.next = select i1 true, {v} {value}, {v} {value}")


def _current(states: list[State], parts: list[Combiner], suffix: str = ".next") -> list[State]:
    return [
        part.join(*(Vec(part.block, x.kind, tuple(n + suffix for n in x.names)) for x in part.split(state)))
        for part, state in zip(parts, states)
    ]


def _accumulated(
    row: Row, parts: list[Combiner], states: list[State], starts: list[str], mask: str = ""
) -> list[State]:
    """The states with the elements from `starts` on combined in."""
    b = row.block
    found = []
    for part, state, value in zip(parts, states, row.read(starts, mask)):
        new: State = value
        if part.kind in LOCATED:
            assert isinstance(value, Vec)
            v = b.vector("i64")
            names = []
            for start in starts:
                first = b.raw(f"insertelement {v} poison, i64 {start}, i64 0")
                wide = b.raw(f"shufflevector {v} {first}, {v} poison, <{b.lanes} x i32> zeroinitializer")
                names.append(b.raw(f"add {v} {wide}, {lane_numbers(b.lanes)}"))
            new = Found(value, Vec(b, "i64", tuple(names)))
        if mask:
            new = part.masked(new, mask)
        found.append(part.combine(state, new))
    return found


def _stack(row: Row, parts: list[Combiner]) -> list[list[str]]:
    """Memory for the levels of the cascade: names by output and vector."""
    b = row.block
    return [[b.raw(f"alloca [{LEVELS} x {_stored(row, kind)}], align 64") for kind in part.kinds] for part in parts]


def _stored(row: Row, kind: str) -> str:
    return f"<{row.block.lanes} x {'i8' if kind == 'i1' else LLVM_TYPES[kind]}>"


def _push(row: Row, parts: list[Combiner], stack: list[list[str]], level: str, states: list[State]) -> None:
    b = row.block
    for part, slots, state in zip(parts, stack, states):
        for slot, x in zip(slots, part.split(state)):
            stored = _stored(row, x.kind)
            at = b.raw(f"getelementptr {stored}, ptr {slot}, i64 {level}")
            kept = b.cast("zext", x, "i8") if x.kind == "i1" else x
            b.do(f"store {stored} {kept.names[0]}, ptr {at}")


def _peek(row: Row, parts: list[Combiner], stack: list[list[str]], level: str) -> list[State]:
    b = row.block
    states = []
    for part, slots in zip(parts, stack):
        vectors = []
        for slot, kind in zip(slots, part.kinds):
            stored = _stored(row, kind)
            at = b.raw(f"getelementptr {stored}, ptr {slot}, i64 {level}")
            name = b.raw(f"load {stored}, ptr {at}")
            x = Vec(b, "i8" if kind == "i1" else kind, (name,))
            vectors.append(x.differs(0) if kind == "i1" else x)
        states.append(part.join(*vectors))
    return states


def _trailing(row: Row, parts: list[Combiner]) -> None:
    """One row becomes one element."""
    b, width = row.block, row.width
    step = b.lanes * width
    b.begin("entry")
    row.open()
    stack = _stack(row, parts)
    b.do("%some = icmp sgt i64 %n, 0")
    b.do("br i1 %some, label %start, label %rest0")
    b.begin("start")
    row.fix()
    b.do(f"%blocks = udiv i64 %n, {BLOCK * step}")
    b.do(f"%main = and i64 %n, {-step}")
    neutral = [part.neutral() for part in parts]
    b.do("br label %block")

    # Blocks of whole steps, the last one shorter: accumulate, then carry like a binary counter.
    b.begin("block")
    b.do("%q = phi i64 [ 0, %start ], [ %q.next, %carried ]")
    b.do(f"%from = mul i64 %q, {BLOCK * step}")
    b.do(f"%end = add i64 %from, {BLOCK * step}")
    b.do("%whole = icmp ult i64 %q, %blocks")
    b.do("%to = select i1 %whole, i64 %end, i64 %main")
    b.do("%steps = icmp ult i64 %from, %to")
    b.do("br i1 %steps, label %inner, label %after")
    b.begin("inner")
    many = GROUP * step if _grouped(parts) else 0
    states = _strided_sum(row, parts, ("a", "inner", "block", "summed"), ("%from", "%to", str(step)), many,
                          lambda i, states: _accumulated(row, parts, states, row.starts(i)))  # fmt: skip
    single = [_narrow(part, state, width) for part, state in zip(parts, states)]
    b.do("br i1 %whole, label %carry, label %after")
    b.begin("carry")
    b.do("%level = phi i64 [ 0, %summed ], [ %level.next, %carrying ]")
    b.do("%digits = phi i64 [ %q, %summed ], [ %digits.next, %carrying ]")
    held = _phis(row, parts, "c", "summed", "carrying", single)
    b.do("%digit = and i64 %digits, 1")
    b.do("%set = icmp ne i64 %digit, 0")
    b.do("br i1 %set, label %carrying, label %carried")
    b.begin("carrying")
    _close(row, parts, "c", [p.combine(x, y) for p, x, y in zip(parts, _peek(row, parts, stack, "%level"), held)])
    b.do("%level.next = add i64 %level, 1")
    b.do("%digits.next = lshr i64 %digits, 1")
    b.do("br label %carry")
    b.begin("carried")
    _push(row, parts, stack, "%level", held)
    b.do("%q.next = add i64 %q, 1")
    b.do("br label %block")

    # What is left of the row: vectors under a mask.
    b.begin("after")
    single = _merged(row, parts, "m", "block", neutral, "summed", single)
    b.do("%left = icmp ult i64 %main, %n")
    b.do("br i1 %left, label %tail, label %rest")
    before = b.label
    b.begin("tail")
    b.do(f"%t = phi i64 [ %main, %{before} ], [ %t.next, %LATCH3 ]")
    states = _phis(row, parts, "t", before, "LATCH3", single)
    _close(row, parts, "t", _accumulated(row, parts, states, ["%t"], row.mask("%t", "%n")))
    b.do(f"%t.next = add i64 %t, {b.lanes}")
    b.do("%tail.more = icmp ult i64 %t.next, %n")
    b.do("br i1 %tail.more, label %tail, label %rest")
    row.patch("%LATCH3", f"%{b.label}")
    latch = b.label
    b.begin("rest")
    states = _merged(row, parts, "r", before, single, latch, _current(states, parts))
    b.do("br label %gather")

    # The levels of the cascade, lowest first.
    b.begin("gather")
    b.do("%glevel = phi i64 [ 0, %rest ], [ %glevel.next, %gnext ]")
    b.do("%gdigits = phi i64 [ %blocks, %rest ], [ %gdigits.next, %gnext ]")
    held = _phis(row, parts, "g", "rest", "gnext", states)
    b.do("%gsome = icmp ne i64 %gdigits, 0")
    b.do("br i1 %gsome, label %gtest, label %finish")
    b.begin("gtest")
    b.do("%gdigit = and i64 %gdigits, 1")
    b.do("%gset = icmp ne i64 %gdigit, 0")
    b.do("br i1 %gset, label %gadd, label %gnext")
    b.begin("gadd")
    added = [p.combine(x, y) for p, x, y in zip(parts, _peek(row, parts, stack, "%glevel"), held)]
    b.do("br label %gnext")
    b.begin("gnext")
    merged = _merged(row, parts, "h", "gtest", held, "gadd", added)
    _close(row, parts, "g", merged)
    b.do("%glevel.next = add i64 %glevel, 1")
    b.do("%gdigits.next = lshr i64 %gdigits, 1")
    b.do("br label %gather")

    b.begin("finish")
    for part, state, port in zip(parts, held, row.outputs):
        _write(row, part, port, part.folded(state))
    b.do("ret void")
    b.begin("rest0")
    for part, port in zip(parts, row.outputs):
        _write(row, part, port, part.folded(part.neutral()))
    b.do("ret void")


def _grouped(parts: list[Combiner]) -> bool:
    """Whether combining rounds, so that chains of it must be short."""
    return any(part.kind in ("sum", "prod") and part.dtype.kind in "fc" for part in parts)


Accumulate = Callable[[str, list[State]], list[State]]
"""From a place and states, the states with what is at the place combined in."""


def _strided_sum(
    row: Row,
    parts: list[Combiner],
    labels: tuple[str, str, str, str],
    span: tuple[str, str, str],
    group: int,
    accumulate: Accumulate,
) -> list[State]:
    """What lies at the places of a span that is not empty, combined; leaves the block at its last label.

    Args:
        row: where to write.
        parts: one for each output.
        labels: a prefix of names, the block that is begun, the one before it, and the one after the loop.
        span: first place, end and step.
        group: what lies within so much is combined by itself first; 0 combines one after the other.
        accumulate: combines one place.
    """
    b = row.block
    tag, head, before, after = labels
    start, end, step = span
    neutral = [part.neutral() for part in parts]
    if not group:
        return _run(row, parts, (tag, head, before, after), (start, end, step), neutral, accumulate)
    # The loop of the groups around that of a group.
    b.do(f"%{tag}.g = phi i64 [ {start}, %{before} ], [ %{tag}.g1, %{tag}.grouped ]")
    states = _phis(row, parts, tag, before, f"{tag}.grouped", neutral)
    b.do(f"%{tag}.far = add i64 %{tag}.g, {group}")
    b.do(f"%{tag}.fits = icmp ult i64 %{tag}.far, {end}")
    b.do(f"%{tag}.g1 = select i1 %{tag}.fits, i64 %{tag}.far, i64 {end}")
    b.do(f"br label %{tag}.group")
    b.begin(f"{tag}.group")
    inner = (f"{tag}.s", f"{tag}.group", head, f"{tag}.grouped")
    sums = _run(row, parts, inner, (f"%{tag}.g", f"%{tag}.g1", step), neutral, accumulate)
    _close(row, parts, tag, [p.combine(x, y) for p, x, y in zip(parts, states, sums)])
    b.do(f"br i1 %{tag}.fits, label %{head}, label %{after}")
    b.begin(after)
    return _current(states, parts)


def _run(
    row: Row,
    parts: list[Combiner],
    labels: tuple[str, str, str, str],
    span: tuple[str, str, str],
    first: list[State],
    accumulate: Accumulate,
) -> list[State]:
    """Places combined one after the other."""
    b = row.block
    tag, head, before, after = labels
    start, end, step = span
    latch = f"LATCH.{tag}"
    b.do(f"%{tag}.i = phi i64 [ {start}, %{before} ], [ %{tag}.i1, %{latch} ]")
    states = _phis(row, parts, tag, before, latch, first)
    _close(row, parts, tag, accumulate(f"%{tag}.i", states))
    b.do(f"%{tag}.i1 = add i64 %{tag}.i, {step}")
    b.do(f"%{tag}.more = icmp ult i64 %{tag}.i1, {end}")
    b.do(f"br i1 %{tag}.more, label %{head}, label %{after}")
    row.patch(f"%{latch}", f"%{b.label}")
    b.begin(after)
    return _current(states, parts)


def _narrow(part: Combiner, state: State, width: int) -> State:
    """The interleaved vectors of a state combined into one."""
    part.block.interleave = width
    return part.interleaved(state)


def _merged(
    row: Row, parts: list[Combiner], name: str, one: str, ones: list[State], other: str, others: list[State]
) -> list[State]:
    """Phis of two ways into a block."""
    b = row.block
    states = []
    for k, (part, x, y) in enumerate(zip(parts, ones, others)):
        vectors = []
        for j, (u, v) in enumerate(zip(part.split(x), part.split(y))):
            this = f"%{name}.{k}.{j}.m"
            b.do(f"{this} = phi {b.vector(u.kind)} [ {u.names[0]}, %{one} ], [ {v.names[0]}, %{other} ]")
            vectors.append(Vec(b, u.kind, (this,)))
        states.append(part.join(*vectors))
    return states


def _write(row: Row, part: Combiner, port: Port, scalars: tuple[str, ...]) -> None:
    """Store the one element of a row."""
    b = row.block
    if part.kind in LOCATED:
        b.do(f"store i64 {scalars[1]}, ptr {port.pointer}, align 8")
        return
    for k, (scalar, kind) in enumerate(zip(scalars, part.kinds)):
        if kind == "i1":
            scalar = b.raw(f"zext i1 {scalar} to i8")
        slot = b.raw(f"getelementptr {port.stored}, ptr {port.pointer}, i64 {k}")
        b.do(f"store {port.stored} {scalar}, ptr {slot}, align {port.align}")


def _leading(row: Row, parts: list[Combiner]) -> None:
    """`m` rows become one, few of them at a time so that they stream."""
    b, width = row.block, row.width
    step = b.lanes * width
    b.begin("entry")
    row.open()
    distances = []
    for number in range(len(row.inputs)):
        slot = b.raw(f"getelementptr i64, ptr %rows, i64 {number}")
        distances.append(b.raw(f"load i64, ptr {slot}, align 8"))
    b.do(f"%main = and i64 %n, {-step}")
    b.do("br label %band")
    b.begin("band")
    b.do("%r0 = phi i64 [ 0, %entry ], [ %r1, %banded ]")
    b.do("%fresh = icmp eq i64 %r0, 0")
    b.do(f"%r.end = add i64 %r0, {GROUPED if _grouped(parts) else COMBINED}")
    b.do("%r.fits = icmp ult i64 %r.end, %m")
    b.do("%r1 = select i1 %r.fits, i64 %r.end, i64 %m")
    b.do("%whole = icmp sgt i64 %main, 0")
    b.do("br i1 %whole, label %columns, label %rest")
    b.begin("columns")
    b.do("%i = phi i64 [ 0, %band ], [ %i.next, %LATCH1 ]")
    _column(row, parts, distances, "p", row.starts("%i"), "")
    b.do(f"%i.next = add i64 %i, {step}")
    b.do("%more = icmp ult i64 %i.next, %main")
    b.do("br i1 %more, label %columns, label %rest")
    row.patch("%LATCH1", f"%{b.label}")
    b.begin("rest")
    b.do("%left = icmp ult i64 %main, %n")
    b.do("br i1 %left, label %tail, label %banded")
    b.interleave = 1
    b.begin("tail")
    b.do("%j = phi i64 [ %main, %rest ], [ %j.next, %LATCH2 ]")
    _column(row, parts, distances, "q", ["%j"], row.mask("%j", "%n"))
    b.do(f"%j.next = add i64 %j, {b.lanes}")
    b.do("%again = icmp ult i64 %j.next, %n")
    b.do("br i1 %again, label %tail, label %banded")
    row.patch("%LATCH2", f"%{b.label}")
    b.begin("banded")
    b.do("%bands.more = icmp ult i64 %r1, %m")
    b.do("br i1 %bands.more, label %band, label %done")
    b.begin("done")
    b.do("ret void")


def _ahead(row: Row, port: Port, distance: str, starts: list[str]) -> None:
    """Ask for what the next rows have in these columns: the processor sees no walk through memory in them."""
    b, size = row.block, port.operand.dtype.itemsize
    b.module.require("prefetch", lambda: "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    far = b.raw(f"mul i64 {distance}, {COMBINED}")
    next_rows = b.raw(f"getelementptr i8, ptr {port.pointer}, i64 {far}")
    first = b.raw(f"mul i64 {starts[0]}, {size}")
    for line in range(0, len(starts) * b.lanes * size, LINE):
        place = b.raw(f"add i64 {first}, {line}")
        at = b.raw(f"getelementptr i8, ptr {next_rows}, i64 {place}")
        b.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")


def _column(row: Row, parts: list[Combiner], distances: list[str], tag: str, starts: list[str], mask: str) -> None:
    """Rows r0 to r1 of a few columns, combined into the result."""
    b = row.block
    before = b.label
    b.do(f"br label %{tag}rows")
    b.begin(f"{tag}rows")

    def accumulate(number: str, states: list[State]) -> list[State]:
        values: list[Value] = []
        for port, distance in zip(row.inputs, distances):
            shift = b.raw(f"mul i64 {number}, {distance}")
            moved = replace(port, pointer=b.raw(f"getelementptr i8, ptr {port.pointer}, i64 {shift}"))
            if port.operand.access is Access.FIXED:
                values.append(fixed_value(b, moved, load_fixed(b, moved)))
            else:
                values.append(load(b, moved, starts, mask))
                if port.operand.access is Access.UNIT and not mask:
                    _ahead(row, moved, distance, starts)
        return [p.combine(x, y) for p, x, y in zip(parts, states, evaluate(b, row.kernel, values))]

    labels, group = (tag, f"{tag}rows", before, f"{tag}summed"), GROUP if _grouped(parts) else 0
    totals = _strided_sum(row, parts, labels, ("%r0", "%r1", "1"), group, accumulate)
    b.do(f"br i1 %fresh, label %{tag}first, label %{tag}again")
    b.begin(f"{tag}again")
    sums = [p.combine(load(b, port, starts, mask), s) for p, port, s in zip(parts, row.outputs, totals)]
    b.do(f"br label %{tag}first")
    b.begin(f"{tag}first")
    for k, (part, port, x, y) in enumerate(zip(parts, row.outputs, totals, sums)):
        vectors = []
        for j, (u, v) in enumerate(zip(part.split(x), part.split(y))):
            names = []
            for w, (first, second) in enumerate(zip(u.names, v.names)):
                this = f"%{tag}out.{k}.{j}.{w}"
                names.append(this)
                b.lines.insert(
                    b.lines.index(f"{tag}first:") + 1,
                    f"  {this} = phi {b.vector(u.kind)} [ {first}, %{tag}summed ], [ {second}, %{tag}again ]",
                )
            vectors.append(Vec(b, u.kind, tuple(names)))
        state = part.join(*vectors)
        assert not isinstance(state, Found)
        store(b, port, starts, state, mask)
