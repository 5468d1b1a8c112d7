"""LLVM text of the inner kernels: a tile of the result, held in registers over the whole sum.

Rows of the tile are lanes of vectors, columns are scalars repeated over a vector. Operands come from packed panels or
directly from memory, through tables of byte offsets. Of complex numbers, rows are kept as they lie in memory: times
the real part of the column, then with parts exchanged and one negated, times the imaginary part.
"""

from tenferro_cpu.native.contraction._code import Code, Kind

ACCUMULATE, SCATTER = 1, 2
"""Flags of a tile: add to what the result holds; its rows are not full vectors that lie together."""

STREAM = 1 << 16
"""Flag of a tile of full vectors on whole lines of memory: they are written past the caches, which wait for no line."""

LONG = 8
"""Summed indices from which on a tile asks for the lines of its result before it needs them."""

SOME = 16
"""Summed indices from which on a tile asks for the rows that follow."""

BUSY = 3
"""Columns from which on sums keep the processor from running ahead to the next rows."""

WIDE = 64
"""Bytes of vectors from which on each is asked for: of narrower ones that takes longer than the sums."""

PARAMETERS = (
    "i64 %k, ptr %a, ptr %am, ptr %ak, ptr %b, ptr %bn, ptr %bk, ptr %c, ptr %cm, ptr %cn, i64 %rows, i64 %flags, "
    "ptr %next, i64 %far"
)
ARGUMENTS = "ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, ptr, i64"
WAYS = ("pp", "dp", "dd")
"""Where rows and columns come from: packed or directly."""


def mask(code: Code, kind: Kind, rows: str) -> str:
    """The lanes of the first `rows` elements."""
    return mask_of(code, kind.lanes, code.let("mul", rows, kind.parts))


def mask_of(code: Code, n: int, reals: str) -> str:
    """The first `reals` lanes of `n`."""
    short = code.raw(f"trunc i64 {code.least(reals, n)} to i32")
    one = code.raw(f"insertelement <{n} x i32> poison, i32 {short}, i32 0")
    every = code.raw(f"shufflevector <{n} x i32> {one}, <{n} x i32> poison, <{n} x i32> zeroinitializer")
    iota = ", ".join(f"i32 {i}" for i in range(n))
    return code.raw(f"icmp slt <{n} x i32> <{iota}>, {every}")


def load_masked(code: Code, kind: Kind, pointer: str, lanes: str) -> str:
    """The vector at `pointer` in some lanes, zero in others."""
    v, n = kind.vector, kind.lanes
    return code.raw(
        f"call {v} @llvm.masked.load.{kind.suffix}.p0(ptr {pointer}, i32 {kind.real_bytes}, <{n} x i1> {lanes}, "
        f"{v} zeroinitializer)"
    )


def store_masked(code: Code, kind: Kind, value: str, pointer: str, lanes: str) -> None:
    """Store some lanes of a vector."""
    v, n = kind.vector, kind.lanes
    code.do(
        f"call void @llvm.masked.store.{kind.suffix}.p0({v} {value}, ptr {pointer}, i32 {kind.real_bytes}, "
        f"<{n} x i1> {lanes})"
    )


def turned(code: Code, kind: Kind, x: str) -> str:
    """Complex numbers times the imaginary unit."""
    n, v = kind.lanes, kind.vector
    order = ", ".join(f"i32 {i ^ 1}" for i in range(n))
    swapped = code.raw(f"shufflevector {v} {x}, {v} poison, <{n} x i32> <{order}>")
    bits, t = f"<{n} x i{8 * kind.real_bytes}>", f"i{8 * kind.real_bytes}"
    signs = ", ".join(f"{t} {-(1 << (8 * kind.real_bytes - 1)) if i % 2 == 0 else 0}" for i in range(n))
    whole = code.raw(f"bitcast {v} {swapped} to {bits}")
    return code.raw(f"bitcast {bits} {code.raw(f'xor {bits} {whole}, <{signs}>')} to {v}")


def repeated(code: Code, kind: Kind, pointer: str) -> str:
    """The real number at `pointer` in every lane."""
    v, n = kind.vector, kind.lanes
    x = code.raw(f"load {kind.real}, ptr {pointer}, align {kind.real_bytes}")
    one = code.raw(f"insertelement {v} poison, {kind.real} {x}, i32 0")
    return code.raw(f"shufflevector {v} {one}, {v} poison, <{n} x i32> zeroinitializer")


def added(code: Code, kind: Kind, total: str, x: str, y: str) -> str:
    """A fused product and sum."""
    v = kind.vector
    return code.raw(f"call {v} @llvm.fma.{kind.suffix}({v} {x}, {v} {y}, {v} {total})")


def name(way: str, vectors: int, columns: int) -> str:
    """Name of a kernel."""
    return f"tile_{way}_{vectors}_{columns}"


def tile(kind: Kind, way: str, vectors: int, columns: int) -> str:
    """The kernel for tiles of some vectors and columns; `k` is at least 1, `rows` the number of rows that count."""
    code = Code(name(way, vectors, columns), PARAMETERS, kind.host.attributes + " noinline")
    v, size = kind.vector, kind.lanes * kind.real_bytes
    rows_at = [code.at("%a", code.word("%am", i * kind.width)) for i in range(vectors)] if way[0] == "d" else []
    columns_at = [code.at("%b", code.word("%bn", j)) for j in range(columns)] if way[1] == "d" else []
    following = _following(code, kind) if way[0] == "d" and columns >= BUSY and size >= WIDE else ()
    held = code.raw(f"alloca [{vectors * columns} x {v}], align 64")
    tail = None
    if way[0] == "d" and kind.host.masks:  # without masks rows that are read where they lie fill all vectors
        last = code.let("sub", "%rows", (vectors - 1) * kind.width)
        tail = mask(code, kind, last)
    _fetch(code, kind, vectors, columns)
    before = code.label
    code.do("br label %sum")
    code.begin("sum")
    slot = len(code.lines)
    i, after, a, a_next, b, b_next = (code.fresh() for _ in range(6))
    totals = {(r, j): (code.fresh(), code.fresh()) for r in range(vectors) for j in range(columns)}
    prefetch(code, code.at("%next", code.let("mul", i, "%far")), 2)
    if way[0] == "d":
        step = code.word("%ak", i)
        pointers = [code.at(p, step) for p in rows_at]
        for place, distance in following:
            for p in pointers:
                prefetch(code, code.at(p, distance), place)
    else:
        pointers = [code.at(a, r * size) for r in range(vectors)]
    across = [code.raw(f"load {v}, ptr {p}, align {kind.real_bytes}") for p in pointers[: -1 if tail else None]]
    if tail:
        across.append(load_masked(code, kind, pointers[-1], tail))
    if way[1] == "d":
        step = code.word("%bk", i)
        down = [code.at(p, step) for p in columns_at]
    else:
        down = [code.at(b, j * kind.item) for j in range(columns)]
    sums = {key: pair[0] for key, pair in totals.items()}
    for part in range(kind.parts):
        if part:
            across = [turned(code, kind, x) for x in across]
        for j in range(columns):
            y = repeated(code, kind, code.at(down[j], part * kind.real_bytes))
            for r in range(vectors):
                sums[r, j] = added(code, kind, sums[r, j], across[r], y)
            code.settle()
    code.do(f"{after} = add i64 {i}, 1")
    code.do(f"{a_next} = getelementptr i8, ptr {a}, i64 {vectors * size}")
    code.do(f"{b_next} = getelementptr i8, ptr {b}, i64 {columns * kind.item}")
    more = code.test("slt", after, "%k")
    code.do(f"br i1 {more}, label %sum, label %end")
    phis = [
        f"  {i} = phi i64 [ 0, %{before} ], [ {after}, %sum ]",
        f"  {a} = phi ptr [ %a, %{before} ], [ {a_next}, %sum ]",
        f"  {b} = phi ptr [ %b, %{before} ], [ {b_next}, %sum ]",
        *[f"  {t[0]} = phi {v} [ zeroinitializer, %{before} ], [ {sums[key]}, %sum ]" for key, t in totals.items()],
    ]
    code.lines[slot:slot] = phis
    code.begin("end")
    _store(code, kind, sums, held, vectors)
    return code.text()


def prefetch(code: Code, pointer: str, place: int, *, write: bool = False) -> None:
    """The line of memory at `pointer`, if any, comes near: 3 to the nearest cache, 2 to the one behind it."""
    code.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 {int(write)}, i32 {place}, i32 1)")


def _following(code: Code, kind: Kind) -> list[tuple[int, str]]:
    """What a tile that reads its rows where they lie asks for: how near, and bytes from the rows of the same index.

    These are the rows that follow, which the next tile takes, unless the next summed index is there. Nothing stays in
    the nearest cache where lines of summed indices have the same place there.
    """
    start = code.label
    with code.when(code.test("sge", "%k", SOME)):
        after = code.let("sub", code.word("%am", code.let("sub", "%rows", 1)), code.word("%am", 0))
        after = code.let("add", after, kind.item)
        step = code.let("sub", code.word("%ak", 1), code.word("%ak", 0))
        follows, collides = code.test("eq", step, after), code.test("eq", code.let("and", step, 4095), 0)
        after = code.raw(f"select i1 {follows}, i64 0, i64 {after}")
        near = code.raw(f"select i1 {collides}, i64 0, i64 {after}")
        end = code.label
    return [(place, code.raw(f"phi i64 [ 0, %{start} ], [ {x}, %{end} ]")) for place, x in ((2, after), (3, near))]


def _fetch(code: Code, kind: Kind, vectors: int, columns: int) -> None:
    """Lines of the result come near while the sum is made, unless they are written past the caches."""
    near = code.test("slt", "%flags", STREAM)
    with code.when(code.raw(f"and i1 {near}, {code.test('sge', '%k', LONG)}")):
        rows = [code.at("%c", code.word("%cm", r * kind.width)) for r in range(vectors)]
        for j in range(columns):
            column = code.word("%cn", j)
            for row in rows:
                prefetch(code, code.at(row, column), 3, write=True)


def _store(code: Code, kind: Kind, sums: dict[tuple[int, int], str], held: str, vectors: int) -> None:
    """Whole vectors at once; anything else is written to the stack, and from there by `scatter`."""
    v, size, columns = kind.vector, kind.lanes * kind.real_bytes, len(sums) // vectors
    plain, other, together, stream = (code.new_label(x) for x in ("plain", "other", "together", "stream"))
    ways = {plain: 0, together: ACCUMULATE, stream: STREAM}
    code.do(f"switch i64 %flags, label %{other} [ {' '.join(f'i64 {n}, label %{x}' for x, n in ways.items())} ]")
    for label, flag in ways.items():
        code.begin(label)
        rows = [code.at("%c", code.word("%cm", r * kind.width)) for r in range(vectors)]
        for j in range(columns):
            column = code.word("%cn", j)
            for r in range(vectors):
                p, x = code.at(rows[r], column), sums[r, j]
                if flag == ACCUMULATE:
                    x = code.raw(f"fadd {v} {x}, {code.raw(f'load {v}, ptr {p}, align {kind.real_bytes}')}")
                past = f"{size}, !nontemporal !0" if flag == STREAM else f"{kind.real_bytes}"
                code.do(f"store {v} {x}, ptr {p}, align {past}")
        code.do("ret void")
    code.begin(other)
    for (r, j), x in sums.items():
        code.do(f"store {v} {x}, ptr {code.at(held, (j * vectors + r) * size)}, align 64")
    code.do(
        f"call void @scatter(ptr {held}, i64 {vectors * size}, i64 %rows, i64 {columns}, ptr %c, ptr %cm, ptr %cn, "
        "i64 %flags)"
    )
    code.do("ret void")


TOGETHER = 4
"""Flag of a tile that is scattered: the rows of its first vector lie together; twice that for the second, and so on."""


def scatter(kind: Kind) -> str:
    """Writes a tile from the stack where its rows lie."""
    parameters = "ptr %held, i64 %step, i64 %rows, i64 %columns, ptr %c, ptr %cm, ptr %cn, i64 %flags"
    code = Code("scatter", parameters, kind.host.attributes + " noinline")
    v, size = kind.vector, kind.lanes * kind.real_bytes
    adds = code.raw("trunc i64 %flags to i1")
    with code.loop(0, "%rows", kind.width) as first:
        count = code.least(code.let("sub", "%rows", first), kind.width)
        held = code.at("%held", code.let("mul", first, kind.item))
        bit = code.let("shl", TOGETHER, code.let("udiv", first, kind.width))
        together = code.test("ne", code.let("and", "%flags", bit), 0)
        with code.when_else(together) as other:
            lanes = mask(code, kind, count)
            row = code.at("%c", code.word("%cm", first))
            with code.loop(0, "%columns") as j:
                x = code.raw(f"load {v}, ptr {code.at(held, code.let('mul', j, '%step'))}, align {size}")
                p = code.at(row, code.word("%cn", j))
                with code.when_else(adds) as fresh:
                    total = code.raw(f"fadd {v} {x}, {load_masked(code, kind, p, lanes)}")
                    store_masked(code, kind, total, p, lanes)
                    next(fresh)
                    store_masked(code, kind, x, p, lanes)
            next(other)
            with code.when_else(code.test("eq", count, kind.width)) as few:
                rows = [code.at("%c", code.word("%cm", code.let("add", first, r))) for r in range(kind.width)]
                _elements(code, kind, held, rows, adds)
                next(few)
                with code.loop(0, count) as r:
                    here = code.at(held, code.let("mul", r, kind.item))
                    _elements(code, kind, here, [code.at("%c", code.word("%cm", code.let("add", first, r)))], adds)
    code.do("ret void")
    return code.text()


def _elements(code: Code, kind: Kind, held: str, rows: list[str], adds: str) -> None:
    """Each of some rows on its own, in every column."""
    e, align = (kind.real if kind.parts == 1 else f"<2 x {kind.real}>"), kind.real_bytes
    with code.when_else(adds) as fresh:
        for adding in (True, False):
            with code.loop(0, "%columns") as j:
                source, column = code.at(held, code.let("mul", j, "%step")), code.word("%cn", j)
                for r, row in enumerate(rows):
                    x = code.raw(f"load {e}, ptr {code.at(source, r * kind.item)}, align {align}")
                    p = code.at(row, column)
                    if adding:
                        x = code.raw(f"fadd {e} {x}, {code.raw(f'load {e}, ptr {p}, align {align}')}")
                    code.do(f"store {e} {x}, ptr {p}, align {align}")
            if adding:
                next(fresh)


def tiles(kind: Kind) -> str:
    """All kernels, and a table of them for each way, by vectors and columns."""
    found = [scatter(kind)]
    for way in WAYS:
        names = []
        for vectors in range(1, kind.vectors + 1):
            for columns in range(1, kind.columns + 1):
                found.append(tile(kind, way, vectors, columns))
                names.append(f"ptr @{name(way, vectors, columns)}")
        found.append(f"@tiles_{way} = private constant [{len(names)} x ptr] [ {', '.join(names)} ]")
    return "\n".join(found)
