"""LLVM text of tiles of the result whose vectors run along the sum, or along the batch, in both operands alike.

No operand is packed or turned: each vector of a row meets each vector of a column. Along the sum, lanes are added up at
the end; along the batch, they are results.
"""

from collections.abc import Callable, Sequence

from tenferro_cpu.native.contraction._code import Code, Kind
from tenferro_cpu.native.contraction._elementwise_text import spread
from tenferro_cpu.native.contraction._product_text import Step
from tenferro_cpu.native.contraction._tile_text import added, load_masked, mask, store_masked, turned

CHUNK = 512
"""Elements of a run that all rows and columns pass together, so that they stay near."""

PAIRS = 4
"""Products of a row and a column alone, of neighbours in the batch, that a tile does at once."""

SIDE_BY_SIDE = 4
"""Sums that are collected at once at least, so that none waits for another."""

PARAMETERS = "i64 %k, ptr %a, ptr %am, ptr %ak, ptr %b, ptr %bn, ptr %bk, ptr %c, ptr %cm, ptr %cn, i64 %run, i64 %adds"
ARGUMENTS = "i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64"


def most(kind: Kind, name: str) -> tuple[int, int]:
    """Rows and columns of a full tile: its sums, a vector of each row and one of a column stay in registers.

    A complex sum along the sum takes two vectors, a complex row of the batch is there twice.
    """
    if kind.host.registers >= 32:
        return (4, 2) if name == "dot" and kind.parts == 2 else (4, 4)
    if kind.parts == 2:
        return (2, 2) if name == "dot" else (3, 2)
    return 3, 3


Values = list[str]


class _Tile(Code):
    def __init__(self, kind: Kind, name: str, rows: int, columns: int) -> None:
        super().__init__(f"{name}_{rows}_{columns}", PARAMETERS, kind.host.attributes + " noinline")
        self.kind, self.size = kind, (rows, columns)
        self.rows_at = [self.at("%a", self.word("%am", r)) for r in range(rows)]
        self.columns_at = [self.at("%b", self.word("%bn", j)) for j in range(columns)]

    def fold(
        self, start: str | int, stop: str, step: int, values: Values, body: Callable[[str, Values], Values]
    ) -> Values:
        """A loop that carries vectors from turn to turn."""
        head, turn, done = self.new_label("head"), self.new_label("turn"), self.new_label("done")
        i, after, before, held = self.fresh(), self.fresh(), self.label, [self.fresh() for _ in values]
        self.do(f"br label %{head}")
        self.begin(head)
        slot = len(self.lines)
        more = self.test("slt", i, stop)
        self.do(f"br i1 {more}, label %{turn}, label %{done}")
        self.begin(turn)
        made = body(i, held)
        self.do(f"{after} = add i64 {i}, {step}")
        carried = [("i64", i, start, after), *[(self.kind.vector, *x) for x in zip(held, values, made, strict=True)]]
        self.lines[slot:slot] = [
            f"  {now} = phi {t} [ {first}, %{before} ], [ {then}, %{self.label} ]" for t, now, first, then in carried
        ]
        self.do(f"br label %{head}")
        self.begin(done)
        return held

    def given(self, condition: str, values: Values, body: Callable[[], Values]) -> Values:
        """Other vectors where a condition holds."""
        before, then, done = self.label, self.new_label("then"), self.new_label("after")
        self.do(f"br i1 {condition}, label %{then}, label %{done}")
        self.begin(then)
        made, end = body(), self.label
        self.do(f"br label %{done}")
        self.begin(done)
        v = self.kind.vector
        return [
            self.raw(f"phi {v} [ {old}, %{before} ], [ {new}, %{end} ]") for old, new in zip(values, made, strict=True)
        ]

    def vectors(self, pointers: Sequence[str], lanes: str | None) -> list[str]:
        """What lies there."""
        if lanes is not None:
            return [load_masked(self, self.kind, p, lanes) for p in pointers]
        return [self.raw(f"load {self.kind.vector}, ptr {p}, align {self.kind.real_bytes}") for p in pointers]


def _dot(kind: Kind, rows: int, columns: int, *, paired: bool = False) -> str:
    """Sums over runs of `run` elements at `k` places: of each row and column, or of each row and its own column."""
    t = _Tile(kind, "pair" if paired else "dot", rows, columns)
    meet = [(n, n) for n in range(rows)] if paired else [(r, j) for j in range(columns) for r in range(rows)]
    step, parts = kind.lanes * kind.real_bytes, kind.parts
    count = len(meet) * parts
    copies = 1 if paired else max(1, SIDE_BY_SIDE // count)  # pairs add up alike, however many there are
    whole, rest = t.let("sdiv", "%run", kind.width), t.let("srem", "%run", kind.width)
    groups = t.let("mul", t.let("sdiv", whole, copies), copies)
    lanes, tail = mask(t, kind, rest), t.test("ne", rest, 0)

    def grown(sums: Values, at: str, down: Values, across: Values, lanes: str | None) -> Values:
        xs = t.vectors([t.at(p, at) for p in down], lanes)
        factors = [spread(t, kind, y) for y in t.vectors([t.at(p, at) for p in across], lanes)]
        pairs = [(xs[r], f) for r, j in meet for f in factors[j]]
        return [added(t, kind, z, x, f) for z, (x, f) in zip(sums, pairs, strict=True)]

    def one(k: str, sums: Values) -> Values:
        down = [t.at(p, t.word("%ak", k)) for p in t.rows_at]
        across = [t.at(p, t.word("%bk", k)) for p in t.columns_at]

        def several(v: str, now: Values) -> Values:
            made: Values = []
            for copy in range(copies):
                at = t.let("mul", t.let("add", v, copy), step)
                made += grown(now[copy * count : (copy + 1) * count], at, down, across, None)
            return made

        def single(v: str, now: Values) -> Values:
            return [*grown(now[:count], t.let("mul", v, step), down, across, None), *now[count:]]

        sums = t.fold(0, groups, copies, sums, several)
        if copies > 1:
            sums = t.fold(groups, whole, 1, sums, single)
        end = t.let("mul", whole, step)
        return t.given(tail, sums, lambda: [*grown(sums[:count], end, down, across, lanes), *sums[count:]])

    sums = t.fold(0, "%k", 1, ["zeroinitializer"] * count * copies, one)
    for number in range(count, count * copies):
        first = number % count
        sums[first] = t.raw(f"fadd {kind.vector} {sums[first]}, {sums[number]}")
    adding = t.test("ne", "%adds", 0)
    for place, (r, j) in enumerate(meet):
        c = t.at("%c", t.word("%cm", r))
        _finish(t, kind, sums[place * parts :][:parts], c if paired else t.at(c, t.word("%cn", j)), adding)
    t.do("ret void")
    return t.text()


def _finish(code: Code, kind: Kind, sums: Sequence[str], c: str, adding: str) -> None:
    """Add up the lanes, and store the number."""
    total, n = sums[0], kind.lanes
    if kind.parts == 2:
        total = code.raw(f"fadd {kind.vector} {total}, {turned(code, kind, sums[1])}")
    while n > kind.parts:
        n //= 2
        halves = [", ".join(f"i32 {h * n + i}" for i in range(n)) for h in range(2)]
        whole = f"<{2 * n} x {kind.real}>"
        x, y = (code.raw(f"shufflevector {whole} {total}, {whole} poison, <{n} x i32> <{h}>") for h in halves)
        total = code.raw(f"fadd <{n} x {kind.real}> {x}, {y}")
    e = f"<{kind.parts} x {kind.real}>"
    with code.when_else(adding) as fresh:
        old = code.raw(f"load {e}, ptr {c}, align {kind.real_bytes}")
        code.do(f"store {e} {code.raw(f'fadd {e} {total}, {old}')}, ptr {c}, align {kind.real_bytes}")
        next(fresh)
        code.do(f"store {e} {total}, ptr {c}, align {kind.real_bytes}")


def _lanes(kind: Kind, rows: int, columns: int) -> str:
    """Products of `run` elements of the batch, at most a vector (and a whole one without masks), over `k` places."""
    t = _Tile(kind, "lanes", rows, columns)
    adding = t.test("ne", "%adds", 0)
    if not kind.host.masks:  # all runs are whole
        _lanes_sum(t, kind, None, adding)
    else:
        with t.when_else(t.test("eq", "%run", kind.width)) as short:
            _lanes_sum(t, kind, None, adding)
            next(short)
            _lanes_sum(t, kind, mask(t, kind, "%run"), adding)
    t.do("ret void")
    return t.text()


def _lanes_sum(t: _Tile, kind: Kind, lanes: str | None, adding: str) -> None:
    def one(k: str, sums: Values) -> Values:
        found = []
        xs = t.vectors([t.at(p, t.word("%ak", k)) for p in t.rows_at], lanes)
        turns = [turned(t, kind, x) for x in xs] if kind.parts == 2 else []
        for j, y in enumerate(t.vectors([t.at(p, t.word("%bk", k)) for p in t.columns_at], lanes)):
            factors = spread(t, kind, y)
            for r, x in enumerate(xs):
                z = added(t, kind, sums[j * len(xs) + r], x, factors[0])
                found.append(added(t, kind, z, turns[r], factors[1]) if turns else z)
        return found

    rows, columns = t.size
    sums = t.fold(0, "%k", 1, ["zeroinitializer"] * rows * columns, one)
    rows_at = [t.at("%c", t.word("%cm", r)) for r in range(rows)]
    places = [t.at(row, column) for column in [t.word("%cn", j) for j in range(columns)] for row in rows_at]
    with t.when_else(adding) as fresh:
        for adds in (True, False):
            for x, c in zip(sums, places, strict=True):
                if adds:
                    (old,) = t.vectors([c], lanes)
                    x = t.raw(f"fadd {kind.vector} {x}, {old}")
                if lanes is not None:
                    store_masked(t, kind, x, c, lanes)
                else:
                    t.do(f"store {kind.vector} {x}, ptr {c}, align {kind.real_bytes}")
            if adds:
                next(fresh)


def strips(kind: Kind, name: str) -> str:
    """The step `name`, ``"dot"`` or ``"lanes"``, and its tiles."""
    most_rows, most_columns = most(kind, name)
    make = _dot if name == "dot" else _lanes
    sizes = [(r, j) for r in range(1, most_rows + 1) for j in range(1, most_columns + 1)]
    table = f"[{len(sizes)} x ptr] [ {', '.join(f'ptr @{name}_{r}_{j}' for r, j in sizes)} ]"
    texts = [make(kind, r, j) for r, j in sizes]
    if name == "dot":
        texts += [_dot(kind, n, n, paired=True) for n in (1, PAIRS)]
    return "\n".join([*texts, f"@tiles_{name} = private constant {table}", _step(kind, name)])


def _pairs(s: Step, first: str, last: str) -> str:
    """Products of one row and one column that are not too long, all of the batch; where what is left begins."""
    rows, columns, inner, run, sums = (s.field(name) for name in ("rows", "columns", "inner", "run", "sums"))
    single = s.test("eq", s.let("mul", s.let("mul", rows, columns), sums), 1)
    short = s.raw(f"and i1 {single}, {s.test('sle', run, CHUNK)}")
    with s.when(short):
        groups = s.let("mul", s.let("sdiv", s.let("sub", last, first), PAIRS), PAIRS)
        middle = s.let("add", first, groups)
        for begin, end, count in ((first, middle, PAIRS), (middle, last, 1)):
            with s.loop(begin, end, count) as n:
                given = f"i64 {inner}"
                for operand in "ab":
                    here = s.raw(f"getelementptr i64, ptr {s.table(f'batch_{operand}')}, i64 {n}")
                    given += f", ptr {s.base(operand)}, ptr {here}, ptr {s.table(f'inner_{operand}')}"
                here = s.raw(f"getelementptr i64, ptr {s.table('batch_c')}, i64 {n}")
                given += f", ptr {s.base('c')}, ptr {here}, ptr null, i64 {run}, i64 0"
                s.do(f"call void @pair_{count}_{count}({given})")
    return s.raw(f"select i1 {short}, i64 {last}, i64 {first}")


def _step(kind: Kind, name: str) -> str:
    s = Step(name, kind)
    bases = [s.base(operand) for operand in "abc"]
    batches = [s.table(f"batch_{operand}") for operand in "abc"]
    rows, columns, inner, run, sums = (s.field(name) for name in ("rows", "columns", "inner", "run", "sums"))
    row_a, row_c, column_b, column_c = (s.table(n) for n in ("row_a", "row_c", "column_b", "column_c"))
    tables = [s.table("inner_a"), s.table("inner_b")]
    most_rows, most_columns = most(kind, name)
    row_from, row_end = s.share(1, rows)
    column_from, column_end = s.share(2, columns)
    chunk = CHUNK if name == "dot" else kind.width
    first, last = s.share(0, s.field("batch"))
    if name == "dot":
        first = _pairs(s, first, last)
    with s.loop(first, last) as n:
        at = [s.at(base, s.word(table, n)) for base, table in zip(bases, batches, strict=True)]
        later = s.test("ne", s.let("srem", n, sums), 0)
        with s.loop(0, run, chunk) as start:
            count = s.least(s.let("sub", run, start), chunk)
            along = s.let("mul", start, kind.item)
            a, b = s.at(at[0], along), s.at(at[1], along)
            c = at[2] if name == "dot" else s.at(at[2], along)
            adding = s.raw(f"or i1 {later}, {s.test('ne', start, 0)}") if name == "dot" else later
            adds = s.raw(f"zext i1 {adding} to i64")
            with s.loop(row_from, row_end, most_rows) as i:
                m = s.least(s.let("sub", row_end, i), most_rows)
                down, row = (s.raw(f"getelementptr i64, ptr {table}, i64 {i}") for table in (row_a, row_c))
                with s.loop(column_from, column_end, most_columns) as j:
                    width = s.least(s.let("sub", column_end, j), most_columns)
                    across, column = (
                        s.raw(f"getelementptr i64, ptr {table}, i64 {j}") for table in (column_b, column_c)
                    )
                    number = s.let("add", s.let("mul", s.let("sub", m, 1), most_columns), s.let("sub", width, 1))
                    tile = s.raw(f"load ptr, ptr {s.raw(f'getelementptr ptr, ptr @tiles_{name}, i64 {number}')}")
                    values = [inner, a, down, tables[0], b, across, tables[1], c, row, column, count, adds]
                    given = ", ".join(f"{t} {x}" for t, x in zip(ARGUMENTS.split(", "), values, strict=True))
                    s.do(f"call void {tile}({given})")
    s.do("ret void")
    return s.text()
