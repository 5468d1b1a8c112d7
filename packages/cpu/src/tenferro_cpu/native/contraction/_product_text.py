"""LLVM text of matrix products over tables of offsets: what is packed when, and which tiles follow each other."""

from collections.abc import Iterable

from tenferro_cpu.native.contraction._code import Code, Kind
from tenferro_cpu.native.contraction._record import PLACE
from tenferro_cpu.native.contraction._tile_text import ARGUMENTS

PARAMETERS = "ptr %d, ptr %bases, ptr %scratch, i64 %piece, i64 %pieces"


class Step(Code):
    """A function that does one piece of one step."""

    def __init__(self, name: str, kind: Kind) -> None:
        super().__init__(name, PARAMETERS, kind.host.attributes + " noinline")
        self.kind = kind

    def field(self, name: str) -> str:
        """A word of the record."""
        return self.word("%d", PLACE[name])

    def table(self, name: str) -> str:
        """An address in the record."""
        return self.pointer("%d", PLACE[name])

    def base(self, operand: str) -> str:
        """Where an operand begins."""
        return self.at(self.pointer("%bases", self.field(operand)), self.field(f"{operand}_at"))

    def share(self, split: int, size: str) -> tuple[str, str]:
        """The part of a range that this piece does."""
        units, unit = self.field("units"), self.field("unit")
        low = self.let("sdiv", self.let("mul", units, "%piece"), "%pieces")
        high = self.let("sdiv", self.let("mul", units, self.let("add", "%piece", 1)), "%pieces")
        mine = self.test("eq", self.field("split"), split)
        start = self.raw(f"select i1 {mine}, i64 {self.let('mul', low, unit)}, i64 0")
        end = self.least(self.let("mul", high, unit), size)
        return start, self.raw(f"select i1 {mine}, i64 {end}, i64 {size}")


class _Product(Step):
    """A matrix product in one of the ways of `WAYS`."""

    def __init__(self, kind: Kind, way: str) -> None:
        super().__init__(f"product_{way}", kind)
        self.way = way
        self.size = {name: self.field(name) for name in ("rows", "columns", "inner", "sums")}
        self.known = {
            name: self.table(name)
            for name in (
                "row_a", "row_c", "inner_a", "inner_b", "column_b", "column_c", "row_flags", "row_inner_flags",
                "column_flags", "column_inner_flags", "tile_flags",
            )
        }  # fmt: skip
        self.batch = self.share(0, self.field("batch"))
        self.row = self.share(1, self.size["rows"])
        self.column = self.share(2, self.size["columns"])
        whole = self.test("eq", self.let("and", self.raw(f"ptrtoint ptr {self.base('c')} to i64"), 63), 0)
        self.ahead = [self.raw("alloca ptr") for _ in "ab"]
        for slot in self.ahead:
            self.do(f"store ptr %d, ptr {slot}")
        self.asks = self.test("ne", self.field("ahead"), 0)
        self.stream = self.raw(f"select i1 {whole}, i64 {self.field('stream')}, i64 0")

    def next_batch(self, n: str, operands: Iterable[tuple[str, str]]) -> None:
        """What tiles ask memory for from now on: the batch after `n`, of bases and tables of offsets."""
        with self.when(self.asks):
            after = self.least(self.let("add", n, 1), self.let("sub", self.batch[1], 1))
            for slot, (base, table) in zip(self.ahead, operands, strict=False):
                self.do(f"store ptr {self.at(base, self.word(table, after))}, ptr {slot}")

    def ask(self) -> str:
        """Where a tile asks memory for a part of the next batch, of one operand and the other in turn.

        Asked for evenly, while tiles are at work, it comes in time; asked for at once, all else would wait.
        """
        mine, other = self.ahead
        p = self.raw(f"load ptr, ptr {mine}")
        with self.when(self.asks):
            step = self.let("mul", self.field("ahead"), self.size["inner"])
            self.do(f"store ptr {self.raw(f'load ptr, ptr {other}')}, ptr {mine}")
            self.do(f"store ptr {self.at(p, step)}, ptr {other}")
        return p

    def entry(self, table: str, number: str) -> str:
        """Address of an entry of a table of words."""
        return self.raw(f"getelementptr i64, ptr {self.known[table]}, i64 {number}")

    def flag(self, table: str, number: str) -> str:
        """Address of an entry of a table of bytes."""
        return self.at(self.known[table], number)

    def pack_columns(self, b: str, to: str, first: str, end: str, inner: str, count: str) -> None:
        """Columns `first` below `end`, over `count` summed indices from `inner`."""
        n = self.kind.columns
        with self.loop(first, end, n) as j:
            columns = self.least(self.let("sub", end, j), n)
            panel = self.at(to, self.let("mul", self.let("mul", self.let("sub", j, first), count), self.kind.item))
            flag = self.raw(f"load i8, ptr {self.flag('column_flags', self.let('udiv', j, n))}")
            self.do(
                f"call void @pack_{n}(ptr {b}, ptr {self.entry('column_b', j)}, ptr {self.entry('inner_b', inner)}, "
                f"i64 {self.let('or', self.raw(f'zext i8 {flag} to i64'), self.field('far_columns'))}, "
                f"ptr {self.flag('column_inner_flags', self.let('udiv', inner, n))}, i64 {columns}, i64 {count}, "
                f"ptr {panel}, i64 {self.let('mul', columns, self.kind.item)})"
            )

    def pack_rows(self, a: str, to: str, first: str, end: str, inner: str, count: str) -> None:
        """Rows `first` below `end`, in panels as tiles take them."""
        w, item = self.kind.width, self.kind.item
        with self.loop(first, end, self.kind.rows) as i:
            vectors = self.vectors(i, end)
            panel = self.at(to, self.let("mul", self.let("mul", self.let("sub", i, first), count), item))
            with self.when_else(self.together(i, end)) as apart:
                tables = f"ptr {self.entry('row_a', i)}, ptr {self.entry('inner_a', inner)}"
                self.do(f"call void @pack_tile(ptr {a}, {tables}, i64 {count}, ptr {panel})")
                next(apart)
                step = self.let("mul", vectors, w * item)
                with self.loop(0, vectors) as r:
                    self.pack_vector(a, self.let("add", i, self.let("mul", r, w)), end, (inner, count),
                                     self.at(panel, self.let("mul", r, w * item)), step)  # fmt: skip

    def together(self, i: str, end: str) -> str:
        """Whether there are all rows of a tile, and each of its vectors lies together; flags are followed by tables."""
        every = self.test("sge", self.let("sub", end, i), self.kind.rows)
        block = self.flag("row_flags", self.let("udiv", i, self.kind.width))
        for r in range(self.kind.vectors):
            flag = self.raw(f"load i8, ptr {self.at(block, r)}")
            every = self.raw(f"and i1 {every}, {self.raw(f'icmp ne i8 {flag}, 0')}")
        return every

    def pack_vector(self, a: str, row: str, end: str, k: tuple[str, str], to: str, step: str) -> None:
        """The rows of one vector over `k`: the first summed index, and how many."""
        w = self.kind.width
        flag = self.raw(f"load i8, ptr {self.flag('row_flags', self.let('udiv', row, w))}")
        self.do(
            f"call void @pack_{w}(ptr {a}, ptr {self.entry('row_a', row)}, ptr {self.entry('inner_a', k[0])}, "
            f"i64 {self.let('or', self.raw(f'zext i8 {flag} to i64'), self.field('far_rows'))}, "
            f"ptr {self.flag('row_inner_flags', self.let('udiv', k[0], w))}, "
            f"i64 {self.least(self.let('sub', end, row), w)}, i64 {k[1]}, ptr {to}, i64 {step})"
        )

    def ended(self) -> str:
        """The text; what was written past the caches is there for all threads."""
        with self.when(self.test("ne", self.stream, 0)):
            self.do("fence seq_cst")
        self.do("ret void")
        return self.text()

    def vectors(self, row: str, end: str) -> str:
        """Vectors of the tile that begins at a row."""
        rows = self.least(self.let("sub", end, row), self.kind.rows)
        return self.let("udiv", self.let("add", rows, self.kind.width - 1), self.kind.width)

    def one(
        self, i: str, j: str, ends: tuple[str, str], at: tuple[str, str, str], k: tuple[str, str], add: str
    ) -> None:
        """The tile at row `i` and column `j`: rows from, columns from, result; first summed index and their number."""
        columns = self.least(self.let("sub", ends[1], j), self.kind.columns)
        vectors = self.vectors(i, ends[0])
        number = self.let("mul", self.let("sub", vectors, 1), self.kind.columns)
        number = self.let("add", number, self.let("sub", columns, 1))
        kernel = self.raw(f"load ptr, ptr {self.raw(f'getelementptr ptr, ptr @tiles_{self.way}, i64 {number}')}")
        flag = self.raw(f"load i8, ptr {self.flag('tile_flags', self.let('udiv', i, self.kind.rows))}")
        flags = self.let("or", self.raw(f"zext i8 {flag} to i64"), add)
        flags = self.raw(f"select i1 {self.test('eq', flags, 0)}, i64 {self.stream}, i64 {flags}")
        rows = self.least(self.let("sub", ends[0], i), self.kind.rows)
        tables = [self.entry("row_a", i), self.entry("inner_a", k[0])]
        others = [self.entry("column_b", j), self.entry("inner_b", k[0])]
        arguments = [k[1], at[0], *tables, at[1], *others, at[2], self.entry("row_c", i), self.entry("column_c", j)]
        arguments += [rows, flags, self.ask(), self.field("ahead")]
        kinds = ARGUMENTS.split(", ")
        values = [f"{t} {x}" for t, x in zip(["i64", *kinds], arguments, strict=True)]
        self.do(f"call void {kernel}({', '.join(values)})")


def packed(kind: Kind) -> str:
    """Both operands are packed, block by block; a panel of columns stays near while all rows pass."""
    p = _Product(kind, "pp")
    size, item = p.size, kind.item
    block = {name: p.field(f"{name}_block") for name in ("row", "inner", "column")}
    bases = [p.base(operand) for operand in "abc"]
    tables = [p.table(f"batch_{operand}") for operand in "abc"]
    rows_to = "%scratch"
    room = p.let("mul", p.let("mul", block["row"], block["inner"]), item)
    columns_to = p.at("%scratch", room)
    last_a, last_b = p.raw("alloca ptr"), p.raw("alloca ptr")
    for slot in (last_a, last_b):
        p.do(f"store ptr null, ptr {slot}")
    one_sum = p.test("sle", size["inner"], block["inner"])
    one_row = p.test("sle", p.let("sub", p.row[1], p.row[0]), block["row"])
    one_column = p.test("sle", p.let("sub", p.column[1], p.column[0]), block["column"])
    keeps_a, keeps_b = (p.raw(f"and i1 {one_sum}, {x}") for x in (one_row, one_column))
    with p.loop(*p.batch) as n:
        a, b, c = (p.at(base, p.word(table, n)) for base, table in zip(bases, tables, strict=True))
        p.next_batch(n, zip(bases, tables, strict=True))
        adding = p.test("ne", p.let("srem", n, size["sums"]), 0)
        with p.loop(*p.column, block["column"]) as jc:
            j_end = p.least(p.let("add", jc, block["column"]), p.column[1])
            with p.loop(0, size["inner"], block["inner"]) as kc:
                k = p.least(p.let("sub", size["inner"], kc), block["inner"])
                later = p.raw(f"or i1 {adding}, {p.test('ne', kc, 0)}")
                add = p.raw(f"zext i1 {later} to i64")
                with p.when(_new(p, last_b, b, keeps_b)):
                    p.pack_columns(b, columns_to, jc, j_end, kc, k)
                with p.loop(*p.row, block["row"]) as ic:
                    i_end = p.least(p.let("add", ic, block["row"]), p.row[1])
                    with p.when(_new(p, last_a, a, keeps_a)):
                        p.pack_rows(a, rows_to, ic, i_end, kc, k)
                    with p.loop(jc, j_end, kind.columns) as j:
                        down = p.at(columns_to, _panel(p, j, jc, k, item))
                        with p.loop(ic, i_end, kind.rows) as i:
                            across = p.at(rows_to, _panel(p, i, ic, k, item))
                            p.one(i, j, (i_end, j_end), (across, down, c), (kc, k), add)
    return p.ended()


def _panel(p: _Product, index: str, first: str, k: str, item: int) -> str:
    return p.let("mul", p.let("mul", p.let("sub", index, first), k), item)


def _new(p: _Product, slot: str, pointer: str, keeps: str) -> str:
    """Whether something else was packed last, or not all of it fits."""
    last = p.raw(f"load ptr, ptr {slot}")
    p.do(f"store ptr {pointer}, ptr {slot}")
    same = p.raw(f"icmp eq ptr {last}, {pointer}")
    return p.raw(f"xor i1 {p.raw(f'and i1 {same}, {keeps}')}, true")


def direct(kind: Kind, way: str) -> str:
    """Rows are read where they lie, a few by all columns at once; columns are packed, or not even these."""
    p = _Product(kind, way)
    size, item = p.size, kind.item
    bases = [p.base(operand) for operand in "abc"]
    tables = [p.table(f"batch_{operand}") for operand in "abc"]
    last_b, block = p.raw("alloca ptr"), p.field("row_block")
    p.do(f"store ptr null, ptr {last_b}")
    with p.loop(*p.batch) as n:
        a, b, c = (p.at(base, p.word(table, n)) for base, table in zip(bases, tables, strict=True))
        p.next_batch(n, zip(bases, tables, strict=True))
        add = p.raw(f"zext i1 {p.test('ne', p.let('srem', n, size['sums']), 0)} to i64")
        if way == "dp":
            with p.when(_new(p, last_b, b, "true")):
                p.pack_columns(b, "%scratch", *p.column, "0", size["inner"])
        with p.loop(*p.row, block) as first:
            end = p.least(p.let("add", first, block), p.row[1])
            with p.loop(*p.column, kind.columns) as j:
                down = p.at("%scratch", _panel(p, j, p.column[0], size["inner"], item)) if way == "dp" else b
                with p.loop(first, end, kind.rows) as i:
                    p.one(i, j, (end, p.column[1]), (a, down, c), ("0", size["inner"]), add)
    return p.ended()


def turn(kind: Kind) -> str:
    """A copy whose innermost axis is another one: rows are packed into the result as if it were a panel."""
    s, w = Step("turn", kind), kind.width
    a, c, batch_a, batch_c = s.base("a"), s.base("c"), s.table("batch_a"), s.table("batch_c")
    rows, inner, step = s.field("rows"), s.field("inner"), s.field("run")
    row_a, inner_a, flags = s.table("row_a"), s.table("inner_a"), s.table("row_inner_flags")
    first, end = s.share(1, rows)
    with s.loop(*s.share(0, s.field("batch"))) as n:
        x, z = s.at(a, s.word(batch_a, n)), s.at(c, s.word(batch_c, n))
        with s.loop(first, end, w) as i:
            some = s.least(s.let("sub", end, i), w)
            s.do(
                f"call void @pack_{w}(ptr {x}, ptr {s.raw(f'getelementptr i64, ptr {row_a}, i64 {i}')}, "
                f"ptr {inner_a}, i64 0, ptr {flags}, i64 {some}, i64 {inner}, "
                f"ptr {s.at(z, s.let('mul', i, kind.item))}, i64 {step})"
            )
    s.do("ret void")
    return s.text()
