"""LLVM text of packing: rows of an operand, wherever they lie, side by side for each summed index.

A block is as many rows as a vector has elements (or a tile columns). Its rows may lie together: then each summed index
is one vector. Or summed indices lie together: then a square is turned in registers. Else elements move one by one.
"""

from tenferro_cpu.native.contraction._code import Code, Kind
from tenferro_cpu.native.contraction._costs import LINE
from tenferro_cpu.native.contraction._tile_text import mask_of, prefetch

TOGETHER, FAR_AWAY = 1, 2
"""Flags of a block: its rows lie together; its operand is large, so that lines of memory are asked for beforehand."""

AHEAD = 4
"""Blocks after which the rows come that memory is asked for; tables go on as far."""


def pack(kind: Kind, width: int) -> str:
    """``void pack_width(source, row offsets, sum offsets, flags, sum blocks lie together, rows, k, to, step)``.

    `step` is the distance in bytes of the summed indices in the panel, `rows` at most `width`. Blocks that are not
    whole are read and written under masks: nothing beyond them is touched.
    """
    return _Pack(kind, width).text()


class _Pack(Code):
    def __init__(self, kind: Kind, width: int) -> None:
        parameters = "ptr %x, ptr %ro, ptr %ko, i64 %flag, ptr %kf, i64 %rows, i64 %k, ptr %to, i64 %step"
        super().__init__(f"pack_{width}", parameters, kind.host.attributes + " noinline")
        self.kind, self.width, self.lanes = kind, width, width * kind.parts
        self.vector_type = f"<{self.lanes} x {kind.real}>"
        self.turned = self.raw(f"alloca [{width} x {self.vector_type}], align 64")
        self.whole = self.test("eq", "%rows", width)
        self.present = mask_of(self, self.lanes, self.let("mul", "%rows", kind.parts))
        with self.when_else(self.test("ne", self.let("and", "%flag", TOGETHER), 0)) as other:
            self.runs()
            next(other)
            with self.when(self.test("ne", self.let("and", "%flag", FAR_AWAY), 0)):
                self.ask()
            self.rest()
        self.do("ret void")

    def runs(self) -> None:
        """Rows lie together: vectors move as they are."""
        first = self.at("%x", self.word("%ro", 0))
        with self.when_else(self.whole) as short:
            for mask in (None, self.present):
                with self.loop(0, "%k") as i:
                    self.store(self.load(self.at(first, self.word("%ko", i)), mask), self.column(i), mask)
                if mask is None:
                    next(short)

    def ask(self) -> None:
        """Ask for the lines of rows to come: these lie where no processor looks for them by itself."""
        rows = [self.at("%x", self.word("%ro", AHEAD * self.width + r)) for r in range(self.width)]
        lies = self.raw(f"icmp ne i8 {self.raw('load i8, ptr %kf')}, 0")
        with self.loop(0, "%k", self.raw(f"select i1 {lies}, i64 {LINE // self.kind.item}, i64 1")) as i:
            offset = self.word("%ko", i)
            for row in rows:
                prefetch(self, self.at(row, offset), 3)

    def rest(self) -> None:
        """Squares where summed indices lie together, else single elements."""
        last = self.let("sub", "%rows", 1)
        rows = [self.at("%x", self.word("%ro", self.least(r, last))) for r in range(self.width)]
        with self.when_else(self.whole) as short:
            self.blocks(rows, None)
            next(short)
            self.blocks(rows, self.present)

    def blocks(self, rows: list[str], present: str | None) -> None:
        """Blocks of summed indices; `present` are the rows that there are, None if all are."""
        with self.loop(0, "%k", self.width) as i:
            left = self.least(self.let("sub", "%k", i), self.width)
            flag = self.raw(f"load i8, ptr {self.at('%kf', self.let('udiv', i, self.width))}")
            enough = self.test("sgt", left, self.width // 2)
            square = self.raw(f"and i1 {enough}, {self.raw(f'icmp ne i8 {flag}, 0')}")
            with self.when_else(square) as other:
                with self.when_else(self.test("eq", left, self.width)) as part:
                    self.square(rows, i, present)
                    next(part)
                    self.part(rows, i, left, present)
                next(other)
                with self.loop(i, self.let("add", i, left)) as j:
                    self.single(rows, j, present)

    def square(self, rows: list[str], i: str, present: str | None) -> None:
        """As many summed indices as rows, from `i` on."""
        start = self.word("%ko", i)
        for number, y in enumerate(turned_square(self, self.kind, [self.load(self.at(r, start)) for r in rows])):
            self.store(y, self.column(self.let("add", i, number)), present)

    def part(self, rows: list[str], i: str, left: str, present: str | None) -> None:
        """`left` summed indices from `i` on, by way of the stack."""
        start, there = self.word("%ko", i), mask_of(self, self.lanes, self.let("mul", left, self.kind.parts))
        found = turned_square(self, self.kind, [self.load(self.at(r, start), there) for r in rows])
        size = self.width * self.kind.item
        for number, y in enumerate(found):
            self.store(y, self.at(self.turned, number * size))
        with self.loop(0, left) as j:
            y = self.load(self.at(self.turned, self.let("mul", j, size)))
            self.store(y, self.column(self.let("add", i, j)), present)

    def single(self, rows: list[str], j: str, present: str | None) -> None:
        """The rows at one summed index, made one vector: a store of its own for each element would take longer."""
        kind, offset = self.kind, self.word("%ko", j)
        e = {4: "float", 8: "double", 16: "<2 x double>"}[kind.item]
        found = [self.raw(f"load {e}, ptr {self.at(row, offset)}, align {kind.real_bytes}") for row in rows]
        whole = self.joined(found) if kind.item == 16 else self.gathered(found, e)
        self.store(self.raw(f"bitcast {whole} to {self.vector_type}"), self.column(j), present)

    def gathered(self, elements: list[str], e: str) -> str:
        """A vector of numbers, with its type."""
        v = f"<{len(elements)} x {e}>"
        vector = "poison"
        for place, x in enumerate(elements):
            vector = self.raw(f"insertelement {v} {vector}, {e} {x}, i32 {place}")
        return f"{v} {vector}"

    def joined(self, parts: list[str]) -> str:
        """A vector of shorter ones, with its type."""
        n = 2
        while len(parts) > 1:
            order = ", ".join(f"i32 {i}" for i in range(2 * n))
            pairs = zip(parts[::2], parts[1::2], strict=True)
            v = f"<{n} x double>"
            parts = [self.raw(f"shufflevector {v} {x}, {v} {y}, <{2 * n} x i32> <{order}>") for x, y in pairs]
            n *= 2
        return f"<{n} x double> {parts[0]}"

    def column(self, j: str) -> str:
        """Where the rows at one summed index are put."""
        return self.at("%to", self.let("mul", j, "%step"))

    def load(self, p: str, mask: str | None = None) -> str:
        """A vector, or some lanes of it."""
        v, align = self.vector_type, self.kind.real_bytes
        if mask is None:
            return self.raw(f"load {v}, ptr {p}, align {align}")
        arguments = f"ptr {p}, i32 {align}, <{self.lanes} x i1> {mask}, {v} zeroinitializer"
        return self.raw(f"call {v} @llvm.masked.load.v{self.lanes}f{8 * align}.p0({arguments})")

    def store(self, x: str, p: str, mask: str | None = None) -> None:
        """A vector, or some lanes of it."""
        v, align = self.vector_type, self.kind.real_bytes
        if mask is None:
            self.do(f"store {v} {x}, ptr {p}, align {align}")
            return
        arguments = f"{v} {x}, ptr {p}, i32 {align}, <{self.lanes} x i1> {mask}"
        self.do(f"call void @llvm.masked.store.v{self.lanes}f{8 * align}.p0({arguments})")


def pack_tile(kind: Kind) -> str:
    """``void pack_tile(source, row offsets, sum offsets, k, to)``: full tiles, whose vectors each lie together.

    All rows for one summed index after the other: neighbours share lines of memory, which would be fetched once for
    each vector, and be gone between, where summed indices are far apart.
    """
    code = Code("pack_tile", "ptr %x, ptr %ro, ptr %ko, i64 %k, ptr %to", kind.host.attributes + " noinline")
    v, size = kind.vector, kind.lanes * kind.real_bytes
    rows = [code.at("%x", code.word("%ro", r * kind.width)) for r in range(kind.vectors)]
    with code.loop(0, "%k") as i:
        offset, to = code.word("%ko", i), code.at("%to", code.let("mul", i, kind.vectors * size))
        found = [code.raw(f"load {v}, ptr {code.at(row, offset)}, align {kind.real_bytes}") for row in rows]
        for r, x in enumerate(found):
            code.do(f"store {v} {x}, ptr {code.at(to, r * size)}, align {kind.real_bytes}")
    code.do("ret void")
    return code.text()


def turned_square(code: Code, kind: Kind, rows: list[str]) -> list[str]:
    """The transpose of a square of elements, given as its rows: pairs at growing distances exchange halves."""
    n, parts = len(rows), kind.parts
    v = f"<{n * parts} x {kind.real}>"
    distance = 1
    while distance < n:
        made = list(rows)
        for low in range(n):
            if low & distance:
                continue
            high = low | distance
            first = [c if not c & distance else n + (c ^ distance) for c in range(n)]
            second = [c | distance if not c & distance else n + c for c in range(n)]
            for place, columns in ((low, first), (high, second)):
                lanes = ", ".join(f"i32 {c * parts + p}" for c in columns for p in range(parts))
                made[place] = code.raw(
                    f"shufflevector {v} {rows[low]}, {v} {rows[high]}, <{n * parts} x i32> <{lanes}>"
                )
        rows = made
        distance *= 2
    return rows
