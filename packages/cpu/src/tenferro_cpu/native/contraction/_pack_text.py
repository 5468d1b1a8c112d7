"""LLVM text of packing: rows of an operand, wherever they lie, side by side for each summed index.

A block is as many rows as a vector has elements (or a tile columns). Its rows may lie together: then each summed index
is one vector. Or summed indices lie together: then a square is turned in registers. Else elements move one by one.
"""

from tenferro_cpu.native.contraction._code import Code, Kind


def pack(kind: Kind, width: int) -> str:
    """``void pack_width(source, row offsets, sum offsets, lie together, sum blocks lie together, rows, k, to, step)``.

    `step` is the distance in bytes of the summed indices in the panel, `rows` at most `width`.
    """
    parameters = "ptr %x, ptr %ro, ptr %ko, i64 %flag, ptr %kf, i64 %rows, i64 %k, ptr %to, i64 %step"
    code = Code(f"pack_{width}", parameters, kind.host.attributes + " noinline")
    lanes, align = width * kind.parts, kind.real_bytes
    v = f"<{lanes} x {kind.real}>"
    short, runs, rest = (code.new_label(n) for n in ("short", "runs", "rest"))
    blocks = code.new_label("blocks")
    whole = code.test("eq", "%rows", width)
    code.do(f"br i1 {whole}, label %{blocks}, label %{short}")

    code.begin(blocks)
    flagged = code.test("ne", "%flag", 0)
    code.do(f"br i1 {flagged}, label %{runs}, label %{rest}")

    code.begin(runs)
    first = code.at("%x", code.word("%ro", 0))
    with code.loop(0, "%k") as i:
        x = code.raw(f"load {v}, ptr {code.at(first, code.word('%ko', i))}, align {align}")
        code.do(f"store {v} {x}, ptr {code.at('%to', code.let('mul', i, '%step'))}, align {align}")
    code.do("ret void")

    code.begin(rest)
    rows = [code.at("%x", code.word("%ro", r)) for r in range(width)]
    with code.loop(0, "%k", width) as i:
        left = code.least(code.let("sub", "%k", i), width)
        full = code.test("eq", left, width)
        flag = code.raw(f"load i8, ptr {code.at('%kf', code.let('udiv', i, width))}")
        square = code.raw(f"and i1 {full}, {code.raw(f'icmp ne i8 {flag}, 0')}")
        to = code.at("%to", code.let("mul", i, "%step"))
        with code.when_else(square) as other:
            start = code.word("%ko", i)
            found = [code.raw(f"load {v}, ptr {code.at(row, start)}, align {align}") for row in rows]
            for column, y in enumerate(turned_square(code, kind, found)):
                code.do(f"store {v} {y}, ptr {code.at(to, code.let('mul', column, '%step'))}, align {align}")
            next(other)
            with code.loop(0, left) as j:
                offset = code.word("%ko", code.let("add", i, j))
                target = code.at(to, code.let("mul", j, "%step"))
                for place, row in enumerate(rows):
                    x = code.raw(f"load {kind.element}, ptr {code.at(row, offset)}, align {align}")
                    code.do(f"store {kind.element} {x}, ptr {code.at(target, place * kind.item)}, align {align}")
    code.do("ret void")

    code.begin(short)
    with code.loop(0, "%rows") as r:
        row, target = code.at("%x", code.word("%ro", r)), code.at("%to", code.let("mul", r, kind.item))
        with code.loop(0, "%k") as i:
            x = code.raw(f"load {kind.element}, ptr {code.at(row, code.word('%ko', i))}, align {align}")
            code.do(f"store {kind.element} {x}, ptr {code.at(target, code.let('mul', i, '%step'))}, align {align}")
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
