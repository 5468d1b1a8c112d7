"""The text of combining rows: many of them in chunks, wide ones in blocks of columns, and then what chunks have left.

Which elements are combined in which order follows from the number of rows alone, and so does every bit of the result;
chunks and blocks are pieces for the team.
"""

from typing import Final

from tenferro_cpu.native.kernels._body import Body, Fields, Loop, item, quotient
from tenferro_cpu.native.kernels._driver import ELEMENTS, SHARES
from tenferro_cpu.native.python._layout import DATA

CHUNK: Final = 512
"""Rows that are combined one after the other; more make partial results, which are combined in turn."""

MOST: Final = 24
"""Operands and results that a call takes: what it notes of each is on the stack."""

GRID: Final = Fields("kernel frame steps units inputs operands width many blocks block results")
"""What a piece is told: `results` are where chunks write, row after row; pieces count blocks of columns first."""


def combined_text() -> str:
    """LLVM text of ``combine(kernel, rest, frame, steps, units, spare, inputs, outputs, width, many, team)``.

    `rest` combines the partial results in the arrays `spare`, of which there is one for each result where there is more
    than one chunk.
    """
    return _piece() + _combine()


def _piece() -> str:
    b = Body("private void @combine_piece(ptr %grid, i64 %piece)")
    own, k = b.variable(f"[{MOST} x i64]"), b.variable("i64")
    kernel, frame, steps, units, results = (
        b.load("%grid", at) for at in (GRID.kernel, GRID.frame, GRID.steps, GRID.units, GRID.results)
    )
    inputs, operands, width, many, blocks, block = (
        b.load("%grid", at, "i64")
        for at in (GRID.inputs, GRID.operands, GRID.width, GRID.many, GRID.blocks, GRID.block)
    )
    chunk, turn = b.get(f"udiv i64 %piece, {blocks}"), b.get(f"urem i64 %piece, {blocks}")
    row, column = b.get(f"mul i64 {chunk}, {CHUNK}"), b.get(f"mul i64 {turn}, {block}")
    rows, columns = _left(b, many, row, str(CHUNK)), _left(b, width, column, block)
    with Loop(b, k, inputs, "operand") as at:
        down = b.get(f"mul i64 {row}, {b.load(item(b, steps, at), kind='i64')}")
        along = b.get(f"mul i64 {column}, {b.load(item(b, units, at), kind='i64')}")
        b.store(b.at(b.at(b.load(item(b, frame, at)), down), along), item(b, own, at))
    place = b.get(f"add i64 {b.get(f'mul i64 {chunk}, {width}')}, {column}")
    with Loop(b, k, b.get(f"sub i64 {operands}, {inputs}"), "result") as at:
        slot = b.get(f"add i64 {at}, {inputs}")
        skipped = b.get(f"mul i64 {place}, {b.load(item(b, units, slot), kind='i64')}")
        b.store(b.at(b.load(item(b, results, at)), skipped), item(b, own, slot))
    b.do(f"call void {kernel}(ptr {own}, i64 {columns}, ptr null, i64 {rows}, ptr {steps})")
    b.do("ret void")
    return b.text()


def _combine() -> str:
    b = Body(
        "private void @combine(ptr %kernel, ptr %rest, ptr %frame, ptr %steps, ptr %units, ptr %spare, i64 %inputs, "
        "i64 %outputs, i64 %width, i64 %many, i64 %team)"
    )
    results, grid, k = b.variable(f"[{MOST} x i64]"), b.variable(f"[{len(GRID.names)} x i64]"), b.variable("i64")
    partial, hops = b.variable(f"[{MOST} x i64]"), b.variable(f"[{MOST} x i64]")
    chunks = quotient(b, "%many", str(CHUNK))
    whole = b.get(f"icmp eq i64 {chunks}, 1")
    with Loop(b, k, "%outputs", "place") as at:
        slot = b.get(f"add i64 {at}, %inputs")
        final = b.load(item(b, "%frame", slot))
        b.store(final, item(b, results, at))
        b.branch(whole, "place.next", "place.spare")
        b.label("place.spare")
        spare = b.load(b.load(item(b, "%spare", at)), DATA)
        b.store(spare, item(b, results, at))
        b.store(spare, item(b, partial, at))
        b.store(final, item(b, partial, b.get(f"add i64 {at}, %outputs")))
        size = b.load(item(b, "%units", slot), kind="i64")
        hop = b.get(f"mul i64 {size}, %width")
        b.store(hop, item(b, hops, at), kind="i64")
        b.store(hop, item(b, hops, b.get(f"add i64 {at}, %outputs")), kind="i64")
        b.jump("place.next")
        b.label("place.next")
    # As many blocks as keep the team busy, of whole vectors.
    wanted = quotient(b, b.get(f"mul i64 %team, {SHARES}"), chunks)
    alone = b.get("icmp ule i64 %team, 1")
    parts = b.get(f"select i1 {alone}, i64 1, i64 {wanted}")
    units = quotient(b, quotient(b, "%width", parts), str(ELEMENTS))
    block = b.get(f"mul i64 {units}, {ELEMENTS}")
    blocks = quotient(b, "%width", block)
    operands = b.get("add i64 %inputs, %outputs")
    for value, field in (
        ("%kernel", GRID.kernel), ("%frame", GRID.frame), ("%steps", GRID.steps), ("%units", GRID.units),
        (results, GRID.results),
    ):  # fmt: skip
        b.store(value, grid, field)
    for value, field in (
        ("%inputs", GRID.inputs), (operands, GRID.operands), ("%width", GRID.width), ("%many", GRID.many),
        (blocks, GRID.blocks), (block, GRID.block),
    ):  # fmt: skip
        b.store(value, grid, field, "i64")
    pieces = b.get(f"mul i64 {blocks}, {chunks}")
    b.branch(alone, "one_by_one", "together")
    b.label("together")
    b.do(f"call void @tenferro_parallel_for(ptr @combine_piece, ptr {grid}, i64 {pieces}, i64 %team)")
    b.jump("chunked")
    b.label("one_by_one")
    with Loop(b, k, pieces, "piece") as at:
        b.do(f"call void @combine_piece(ptr {grid}, i64 {at})")
    b.jump("chunked")
    b.label("chunked")
    b.branch(whole, "done", "again")
    b.label("again")
    b.do(f"call void %rest(ptr {partial}, i64 %width, ptr null, i64 {chunks}, ptr {hops})")
    b.jump("done")
    b.label("done")
    b.do("ret void")
    return b.text()


def _left(b: Body, total: str, start: str, most: str) -> str:
    left = b.get(f"sub i64 {total}, {start}")
    return b.get(f"select i1 {b.get(f'icmp ult i64 {left}, {most}')}, i64 {left}, i64 {most}")
