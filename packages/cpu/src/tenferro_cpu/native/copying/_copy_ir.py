"""LLVM text of the kernels that move elements: tiles, runs and narrow interleaves.

A kernel is ``void(ptr source, ptr target, ptr plan)``. The plan is a row of 64-bit words followed by its tables of byte
offsets; see `Words`. A kernel knows the size of an element, the rest comes from the plan: few kernels serve all shapes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

from tenferro_cpu.native.kernels._body import Fields


class Words(IntEnum):
    """Word index of every field of a plan; tables are given by their byte offset from the start of the plan."""

    KERNEL = 0
    STREAM = 1  # kernel with non-temporal stores, or 0: it needs a target aligned to 64 bytes
    BYTES = 2
    REPEAT = 3  # the longest outer axis, kept out of the tables
    REPEAT_SOURCE = 4
    REPEAT_TARGET = 5
    OUTER = 6
    ROWS = 7
    COLUMNS = 8
    RUN = 9  # bytes of a run
    OUTER_SOURCE = 10
    OUTER_TARGET = 11
    ROW_SOURCE = 12
    ROW_TARGET = 13
    COLUMN_SOURCE = 14
    COLUMN_TARGET = 15
    TILE = 16  # blocks along each side of a tile
    PIECES = 17  # for the thread team: one of the counts above is cut
    CUT = 18  # index of that count
    LENGTH = 19  # of a piece
    CUT_SOURCE = 20  # bytes for each step of the count, where it has no tables
    CUT_TARGET = 21
    CUT_TABLES = 22  # index of the first of its two tables, or 0


@dataclass(frozen=True, slots=True)
class Variant:
    """Which kernel.

    Attributes:
        kind: ``"tile"``, ``"run"``, ``"interleave"`` or ``"deinterleave"``.
        item: bytes of an element, a power of two.
        width: elements of a vector.
        rows: rows of a block; streams of an interleave.
        columns: columns of a block.
        load: neighbours in the source that one load may take: all of `columns`, or a power of two.
        store: neighbours in the target that one store may take: all of `rows`, or a power of two.
        stream: whether stores bypass the caches.
    """

    kind: str
    item: int
    width: int
    rows: int = 0
    columns: int = 0
    load: int = 0
    store: int = 0
    stream: bool = False

    @property
    def name(self) -> str:
        """Name of the function."""
        sizes = (self.item, self.width, self.rows, self.columns, self.load, self.store)
        return "_".join(map(str, (self.kind, *sizes, "stream" if self.stream else "plain")))


class Writer:
    """Lines of one function, with names for values that are made up."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.block = "entry"

    def let(self, text: str) -> str:
        """A new value."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def put(self, text: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {text}")

    def at(self, pointer: str, offset: str | int) -> str:
        """Pointer plus bytes."""
        return pointer if offset == 0 else self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def word(self, table: str, index: str | int, shift: int = 0) -> str:
        """A 64-bit entry of a table."""
        place = self.let(f"getelementptr i64, ptr {table}, i64 {index}")
        return self.let(f"load i64, ptr {place if not shift else self.at(place, 8 * shift)}, align 8")

    def least(self, a: str, b: str) -> str:
        """The smaller of two signed integers."""
        return self.let(f"select i1 {self.let(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    @contextmanager
    def loop(self, start: str | int, stop: str, step: str | int = 1) -> Iterator[str]:
        """A counted loop; gives the counter."""
        self.count += 1
        n, before = self.count, self.block
        self.put(f"br label %h{n}")
        self.lines.append(f"h{n}:")
        self.put(f"%i{n} = phi i64 [ {start}, %{before} ], [ %n{n}, %l{n} ]")
        self.put(f"%c{n} = icmp slt i64 %i{n}, {stop}")
        self.put(f"br i1 %c{n}, label %b{n}, label %x{n}")
        self.lines.append(f"b{n}:")
        self.block = f"b{n}"
        yield f"%i{n}"
        self.put(f"br label %l{n}")
        self.lines.append(f"l{n}:")
        self.put(f"%n{n} = add i64 %i{n}, {step}")
        self.put(f"br label %h{n}")
        self.lines.append(f"x{n}:")
        self.block = f"x{n}"


class Lanes:
    """Vectors of elements: an element of 16 or 32 bytes is two or four lanes."""

    def __init__(self, writer: Writer, item: int, stream: bool) -> None:
        self.writer, self.item, self.stream = writer, item, stream
        self.per_item = max(1, item // 8)
        self.lane = f"i{8 * min(item, 8)}"

    def type(self, n: int) -> str:
        """Vector of `n` elements."""
        return f"<{n * self.per_item} x {self.lane}>"

    def load(self, pointer: str, n: int) -> str:
        """`n` neighbours, at any address that suits one element."""
        return self.writer.let(f"load {self.type(n)}, ptr {pointer}, align {min(self.item, 8)}")

    def store(self, value: str, pointer: str, n: int) -> None:
        """`n` neighbours."""
        how = f"align {min(64, n * self.item)}, !nontemporal !0" if self.stream else f"align {min(self.item, 8)}"
        self.writer.put(f"store {self.type(n)} {value}, ptr {pointer}, {how}")

    def shuffle(self, a: str, b: str, n: int, picks: list[int]) -> str:
        """Elements of two vectors of `n`, by index into their concatenation; -1 is any."""
        lanes = [k if k < 0 else k * self.per_item + j for k in picks for j in range(self.per_item)]
        mask = ", ".join("i32 poison" if k < 0 else f"i32 {k}" for k in lanes)
        kind = self.type(n)
        return self.writer.let(f"shufflevector {kind} {a}, {kind} {b}, <{len(lanes)} x i32> <{mask}>")

    def joined(self, parts: list[str], n: int, width: int) -> str:
        """One vector of `width` elements that begins with some parts of `n`; several parts fill it."""
        while len(parts) > 1:
            parts = [self.shuffle(a, b, n, list(range(2 * n))) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            n *= 2
        return parts[0] if n == width else self.shuffle(parts[0], "poison", n, [*range(n), *[-1] * (width - n)])

    def transposed(self, rows: list[str]) -> list[str]:
        """A square of elements: in round ``b``, rows whose numbers differ in bit ``b`` exchange elements."""
        n, bit = len(rows), 1
        while bit < n:
            low = [k if not k & bit else n + k - bit for k in range(n)]
            high = [k + bit if not k & bit else n + k for k in range(n)]
            out = list(rows)
            for i in range(n):
                if not i & bit and (rows[i], rows[i + bit]) != ("poison", "poison"):
                    out[i] = self.shuffle(rows[i], rows[i + bit], n, low)
                    out[i + bit] = self.shuffle(rows[i], rows[i + bit], n, high)
            rows, bit = out, 2 * bit
        return rows

    def gathered(self, vectors: list[str], n: int, picks: list[int]) -> str:
        """`n` elements of many vectors of `n`, by index into their concatenation."""
        value = vectors[0]
        if len(vectors) == 1:
            return value
        for k in range(1, len(vectors)):
            taken = [
                n + p - k * n if p // n == k else -1 if p // n > k else p if k == 1 else i for i, p in enumerate(picks)
            ]
            value = self.shuffle(value, vectors[k], n, taken)
        return value


TABLES = (Words.OUTER_SOURCE, Words.COLUMN_TARGET)
"""First and last field that is the offset of a table."""

JOB = Fields("kernel source target plan")
"""What a piece is told."""

PIECE = f"""
; A piece of a plan for the thread team: a header of its own with one count cut.
define void @copy_piece(ptr %context, i64 %piece) nounwind {{
entry:
  %own = alloca [{len(Words)} x i64]
{JOB.unpacked("%context", "kernel source target plan")}
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %plan, i64 {8 * len(Words)}, i1 false)
  %there = ptrtoint ptr %plan to i64
  %here = ptrtoint ptr %own to i64
  %apart = sub i64 %there, %here
  br label %table
table:
  %k = phi i64 [ {int(TABLES[0])}, %entry ], [ %k1, %table ]
  %offset_at = getelementptr i64, ptr %own, i64 %k
  %offset = load i64, ptr %offset_at
  %moved = add i64 %offset, %apart
  store i64 %moved, ptr %offset_at
  %k1 = add i64 %k, 1
  %more = icmp ule i64 %k1, {int(TABLES[1])}
  br i1 %more, label %table, label %cut
cut:
  %cut_at = getelementptr i64, ptr %plan, i64 {int(Words.CUT)}
  %cut.i = load i64, ptr %cut_at
  %length_at = getelementptr i64, ptr %plan, i64 {int(Words.LENGTH)}
  %length = load i64, ptr %length_at
  %pieces_at = getelementptr i64, ptr %plan, i64 {int(Words.PIECES)}
  %pieces = load i64, ptr %pieces_at
  %count_at = getelementptr i64, ptr %own, i64 %cut.i
  %count = load i64, ptr %count_at
  %from = mul i64 %piece, %length
  %left = sub i64 %count, %from
  %next = add i64 %piece, 1
  %last = icmp eq i64 %next, %pieces
  %n = select i1 %last, i64 %left, i64 %length
  store i64 %n, ptr %count_at
  %by_source_at = getelementptr i64, ptr %plan, i64 {int(Words.CUT_SOURCE)}
  %by_source = load i64, ptr %by_source_at
  %by_target_at = getelementptr i64, ptr %plan, i64 {int(Words.CUT_TARGET)}
  %by_target = load i64, ptr %by_target_at
  %to_source = mul i64 %by_source, %from
  %to_target = mul i64 %by_target, %from
  %source.p = getelementptr i8, ptr %source, i64 %to_source
  %target.p = getelementptr i8, ptr %target, i64 %to_target
  %tables_at = getelementptr i64, ptr %plan, i64 {int(Words.CUT_TABLES)}
  %tables = load i64, ptr %tables_at
  %has = icmp ne i64 %tables, 0
  br i1 %has, label %shift, label %run
shift:
  %skipped = shl i64 %from, 3
  %one_at = getelementptr i64, ptr %own, i64 %tables
  %one = load i64, ptr %one_at
  %one.m = add i64 %one, %skipped
  store i64 %one.m, ptr %one_at
  %two_at = getelementptr i64, ptr %one_at, i64 1
  %two = load i64, ptr %two_at
  %two.m = add i64 %two, %skipped
  store i64 %two.m, ptr %two_at
  br label %run
run:
  call void %kernel(ptr %source.p, ptr %target.p, ptr %own)
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def text(variant: Variant, attributes: str) -> str:
    """The module of one kernel; `attributes` are those of its function."""
    writer = Writer()
    lanes = Lanes(writer, variant.item, variant.stream)
    writer.lines += [f"define void @{variant.name}(ptr %source, ptr %target, ptr %plan) #0 {{", "entry:"]
    with _outer(writer) as (source, target):
        _BODIES[variant.kind](writer, lanes, variant, source, target)
    if variant.stream:
        writer.put("fence seq_cst")  # later ordinary stores must not overtake the streamed ones
    writer.lines += ["  ret void", "}", f"attributes #0 = {{ {attributes} }}", "!0 = !{i32 1}"]
    return "\n".join(writer.lines)


def _field(w: Writer, field: Words) -> str:
    return w.word("%plan", int(field))


def _table(w: Writer, field: Words) -> str:
    return w.at("%plan", _field(w, field))


@contextmanager
def _outer(w: Writer) -> Iterator[tuple[str, str]]:
    """Start addresses of every combination of the outer axes."""
    repeat, outer = _field(w, Words.REPEAT), _field(w, Words.OUTER)
    by_source, by_target = _field(w, Words.REPEAT_SOURCE), _field(w, Words.REPEAT_TARGET)
    sources, targets = _table(w, Words.OUTER_SOURCE), _table(w, Words.OUTER_TARGET)
    with w.loop(0, repeat) as r:
        source = w.at("%source", w.let(f"mul i64 {r}, {by_source}"))
        target = w.at("%target", w.let(f"mul i64 {r}, {by_target}"))
        with w.loop(0, outer) as o:
            yield w.at(source, w.word(sources, o)), w.at(target, w.word(targets, o))


@contextmanager
def _tiles(w: Writer, row_step: int, column_step: int) -> Iterator[tuple[str, str]]:
    """Rows and columns in steps, tile by tile; the last step of an axis goes back as far as it must.

    Steps overlap there; copying an element twice does no harm.
    """
    rows, columns, tile = _field(w, Words.ROWS), _field(w, Words.COLUMNS), _field(w, Words.TILE)
    last_row, last_column = w.let(f"sub i64 {rows}, {row_step}"), w.let(f"sub i64 {columns}, {column_step}")
    row_tiles, column_tiles = w.let(f"mul i64 {tile}, {row_step}"), w.let(f"mul i64 {tile}, {column_step}")
    with w.loop(0, rows, row_tiles) as row_tile, w.loop(0, columns, column_tiles) as column_tile:
        row_end = w.least(w.let(f"add i64 {row_tile}, {row_tiles}"), rows)
        column_end = w.least(w.let(f"add i64 {column_tile}, {column_tiles}"), columns)
        with w.loop(row_tile, row_end, row_step) as i:
            row = i if row_step == 1 else w.least(i, last_row)
            with w.loop(column_tile, column_end, column_step) as j:
                yield row, j if column_step == 1 else w.least(j, last_column)


def _tile(w: Writer, v: Lanes, variant: Variant, source: str, target: str) -> None:
    """Blocks: a vector from every row, transposed in registers, a vector to every column."""
    width, rows, columns, load, store = variant.width, variant.rows, variant.columns, variant.load, variant.store
    row_source, row_target = _table(w, Words.ROW_SOURCE), _table(w, Words.ROW_TARGET)
    column_source, column_target = _table(w, Words.COLUMN_SOURCE), _table(w, Words.COLUMN_TARGET)
    with _tiles(w, rows, columns) as (row, column):
        from_columns = [w.word(column_source, column, shift=k) for k in range(0, columns, load)]
        block = ["poison"] * width
        for k in range(rows):
            start = w.at(source, w.word(row_source, row, shift=k))
            block[k] = v.joined([v.load(w.at(start, c), load) for c in from_columns], load, width)
        to_rows = [w.word(row_target, row, shift=k) for k in range(0, rows, store)]
        for k, values in enumerate(v.transposed(block)[:columns]):
            start = w.at(target, w.word(column_target, column, shift=k))
            for part, r in enumerate(to_rows):
                picks = list(range(part * store, (part + 1) * store))
                piece = values if store == width else v.shuffle(values, "poison", width, picks)
                v.store(piece, w.at(start, r), store)


def _run(w: Writer, v: Lanes, variant: Variant, source: str, target: str) -> None:
    """Runs of at least one vector; the last vector of a run ends where the run ends."""
    n = variant.width
    row_source, row_target = _table(w, Words.ROW_SOURCE), _table(w, Words.ROW_TARGET)
    column_source, column_target = _table(w, Words.COLUMN_SOURCE), _table(w, Words.COLUMN_TARGET)
    last = w.let(f"sub i64 {_field(w, Words.RUN)}, {n * variant.item}")
    with _tiles(w, 1, 1) as (row, column):
        start = w.at(w.at(source, w.word(row_source, row)), w.word(column_source, column))
        end = w.at(w.at(target, w.word(row_target, row)), w.word(column_target, column))
        with w.loop(0, last, n * variant.item) as k:
            v.store(v.load(w.at(start, k), n), w.at(end, k), n)
        v.store(v.load(w.at(start, last), n), w.at(end, last), n)


def _interleave(w: Writer, v: Lanes, variant: Variant, source: str, target: str) -> None:
    """Few long rows become the elements of short neighbouring groups."""
    streams, n = variant.rows, variant.width
    rows = _table(w, Words.ROW_SOURCE)
    starts = [w.at(source, w.word(rows, k)) for k in range(streams)]
    with _columns(w, n) as j:
        here = w.let(f"mul i64 {j}, {variant.item}")
        values = [v.load(w.at(start, here), n) for start in starts]
        there = w.at(target, w.let(f"mul i64 {here}, {streams}"))
        for k in range(streams):
            picks = [(i % streams) * n + i // streams for i in range(k * n, (k + 1) * n)]
            v.store(v.gathered(values, n, picks), w.at(there, k * n * variant.item), n)


def _deinterleave(w: Writer, v: Lanes, variant: Variant, source: str, target: str) -> None:
    """Elements of short neighbouring groups become few long rows."""
    streams, n = variant.rows, variant.width
    rows = _table(w, Words.ROW_TARGET)
    ends = [w.at(target, w.word(rows, k)) for k in range(streams)]
    with _columns(w, n) as j:
        there = w.let(f"mul i64 {j}, {variant.item}")
        here = w.at(source, w.let(f"mul i64 {there}, {streams}"))
        values = [v.load(w.at(here, k * n * variant.item), n) for k in range(streams)]
        for k in range(streams):
            picks = [i * streams + k for i in range(n)]
            v.store(v.gathered(values, n, picks), w.at(ends[k], there), n)


@contextmanager
def _columns(w: Writer, step: int) -> Iterator[str]:
    columns = _field(w, Words.COLUMNS)
    last = w.let(f"sub i64 {columns}, {step}")
    with w.loop(0, columns, step) as j:
        yield w.least(j, last)


_BODIES = {"tile": _tile, "run": _run, "interleave": _interleave, "deinterleave": _deinterleave}
