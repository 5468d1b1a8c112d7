"""LLVM text of steps without a matrix product: element-wise ones, zeros."""

from tenferro_cpu.native.contraction._code import Code, Kind
from tenferro_cpu.native.contraction._costs import LINE
from tenferro_cpu.native.contraction._product_text import Step
from tenferro_cpu.native.contraction._tile_text import added, load_masked, mask, repeated, store_masked, turned


def runs(kind: Kind, scaling: bool) -> str:
    """Runs of the result: products of two runs, or of a run and one number; several of a batch may add up."""
    s = Step("scaling" if scaling else "elementwise", kind)
    run, bases = s.field("run"), [s.base(operand) for operand in "abc"]
    batches, rows = ([s.table(f"{what}_{operand}") for operand in "abc"] for what in ("batch", "row"))
    count, sums, parts = s.field("rows"), s.field("sums"), _parts(s, run)
    lies = s.test("eq", s.let("urem", s.raw(f"ptrtoint ptr {bases[2]} to i64"), kind.item), 0)
    past = s.raw(f"and i1 {lies}, {s.test('ne', s.field('stream'), 0)}")
    with s.loop(*s.share(0, s.field("batch"))) as n:
        at = [s.at(base, s.word(table, n)) for base, table in zip(bases, batches, strict=True)]
        adding = s.test("ne", s.let("srem", n, sums), 0)
        with s.loop(0, count) as m:
            a, b, c = (s.at(base, s.word(table, m)) for base, table in zip(at, rows, strict=True))
            factors = [repeated(s, kind, s.at(b, p * kind.real_bytes)) for p in range(kind.parts)] if scaling else []
            with s.when_else(adding) as fresh:
                _run(s, (a, b, c), factors, parts, adds=True)
                next(fresh)
                with s.when_else(past) as near:
                    _run_past(s, (a, b, c), factors, run)
                    next(near)
                    _run(s, (a, b, c), factors, parts)
    with s.when(past):
        s.do("fence seq_cst")
    s.do("ret void")
    return s.text()


Places = tuple[str, str, str]


def _parts(s: Step, run: str) -> tuple[str, str]:
    """Whole vectors of a run, and elements after them."""
    return s.let("sdiv", run, s.kind.width), s.let("srem", run, s.kind.width)


def _run(
    s: Step, at: Places, factors: list[str], parts: tuple[str, str], *, adds: bool = False, past: bool = False
) -> None:
    """One run; `past` the caches, from a line of memory on."""
    step = s.kind.lanes * s.kind.real_bytes
    whole, rest = parts
    with s.loop(0, whole) as v:
        _vector(s, _further(s, at, s.let("mul", v, step)), factors, None, adds=adds, past=past)
    with s.when(s.test("ne", rest, 0)):
        _vector(s, _further(s, at, s.let("mul", whole, step)), factors, mask(s, s.kind, rest), adds=adds)


def _run_past(s: Step, at: Places, factors: list[str], run: str) -> None:
    """One run of whole lines of memory, and what is before and after them."""
    kind = s.kind
    into = s.let("and", s.let("sub", 0, s.raw(f"ptrtoint ptr {at[2]} to i64")), LINE - 1)
    head = s.least(s.let("udiv", into, kind.item), run)
    with s.loop(0, head, kind.width) as first:
        lanes = mask(s, kind, s.let("sub", head, first))
        _vector(s, _further(s, at, s.let("mul", first, kind.item)), factors, lanes)
    at = _further(s, at, s.let("mul", head, kind.item))
    _run(s, at, factors, _parts(s, s.let("sub", run, head)), past=True)


def _further(s: Step, at: Places, offset: str) -> Places:
    a, b, c = (s.at(p, offset) for p in at)
    return a, b, c


def _vector(
    s: Step, at: Places, factors: list[str], lanes: str | None, *, adds: bool = False, past: bool = False
) -> None:
    kind = s.kind

    def load(p: str) -> str:
        if lanes is not None:
            return load_masked(s, kind, p, lanes)
        return s.raw(f"load {kind.vector}, ptr {p}, align {kind.real_bytes}")

    result = times(s, kind, load(at[0]), factors or spread(s, kind, load(at[1])), load(at[2]) if adds else None)
    if lanes is not None:
        store_masked(s, kind, result, at[2], lanes)
    else:
        how = f"{kind.lanes * kind.real_bytes}, !nontemporal !0" if past else f"{kind.real_bytes}"
        s.do(f"store {kind.vector} {result}, ptr {at[2]}, align {how}")


def spread(code: Code, kind: Kind, y: str) -> list[str]:
    """The real parts of a vector, each in both places of its element; the imaginary ones likewise."""
    if kind.parts == 1:
        return [y]
    n, v = kind.lanes, kind.vector
    orders = (", ".join(f"i32 {i & ~1 | part}" for i in range(n)) for part in range(2))
    return [code.raw(f"shufflevector {v} {y}, {v} poison, <{n} x i32> <{order}>") for order in orders]


def times(code: Code, kind: Kind, x: str, factors: list[str], total: str | None) -> str:
    """A vector times numbers given by their parts, added to a total."""
    v = kind.vector
    result = added(code, kind, total, x, factors[0]) if total else code.raw(f"fmul {v} {x}, {factors[0]}")
    return result if kind.parts == 1 else added(code, kind, result, turned(code, kind, x), factors[1])


def gather(kind: Kind) -> str:
    """Single elements, each by its offsets."""
    s = Step("gather", kind)
    e, align = (kind.real if kind.parts == 1 else f"<2 x {kind.real}>"), kind.real_bytes
    bases = [s.base(operand) for operand in "abc"]
    batches, rows, inner = ([s.table(f"{what}_{o}") for o in "abc"] for what in ("batch", "row", "inner"))
    count, sums, length = s.field("rows"), s.field("sums"), s.field("inner")
    with s.loop(*s.share(0, s.field("batch"))) as n:
        at = [s.at(base, s.word(table, n)) for base, table in zip(bases, batches, strict=True)]
        adding = s.test("ne", s.let("srem", n, sums), 0)
        with s.loop(0, count) as m:
            row = [s.at(base, s.word(table, m)) for base, table in zip(at, rows, strict=True)]
            with s.loop(0, length) as i:
                a, b, c = (s.at(base, s.word(table, i)) for base, table in zip(row, inner, strict=True))
                x, y = (s.raw(f"load {e}, ptr {p}, align {align}") for p in (a, b))
                result = _product(s, kind, x, y)
                with s.when_else(adding) as fresh:
                    total = s.raw(f"fadd {e} {result}, {s.raw(f'load {e}, ptr {c}, align {align}')}")
                    s.do(f"store {e} {total}, ptr {c}, align {align}")
                    next(fresh)
                    s.do(f"store {e} {result}, ptr {c}, align {align}")
    s.do("ret void")
    return s.text()


def _product(s: Step, kind: Kind, x: str, y: str) -> str:
    if kind.parts == 1:
        return s.raw(f"fmul {kind.real} {x}, {y}")
    pair = f"<2 x {kind.real}>"
    parts = [s.raw(f"shufflevector {pair} {y}, {pair} poison, <2 x i32> <i32 {part}, i32 {part}>") for part in range(2)]
    swapped = s.raw(f"shufflevector {pair} {x}, {pair} poison, <2 x i32> <i32 1, i32 0>")
    turn = s.raw(f"fmul {pair} {swapped}, <{kind.real} -1.0, {kind.real} 1.0>")
    return s.raw(f"fadd {pair} {s.raw(f'fmul {pair} {x}, {parts[0]}')}, {s.raw(f'fmul {pair} {turn}, {parts[1]}')}")


def fill(kind: Kind) -> str:
    """Zeros at every offset of the batch and the rows."""
    s = Step("fill", kind)
    base, batch, rows, count = s.base("c"), s.table("batch_c"), s.table("row_c"), s.field("rows")
    with s.loop(*s.share(0, s.field("batch"))) as n:
        at = s.at(base, s.word(batch, n))
        with s.loop(0, count) as m:
            s.do(f"store {kind.element} zeroinitializer, ptr {s.at(at, s.word(rows, m))}, align {kind.real_bytes}"
                 if kind.item == 16 else
                 f"store {kind.element} 0, ptr {s.at(at, s.word(rows, m))}, align {kind.real_bytes}")  # fmt: skip
    s.do("ret void")
    return s.text()
