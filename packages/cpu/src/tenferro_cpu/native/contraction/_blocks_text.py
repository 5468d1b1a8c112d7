"""LLVM text of products that are done block by block of the batch, with copies of a block's operands that stay near."""

from tenferro_cpu.native.contraction._code import Kind
from tenferro_cpu.native.contraction._product_text import Step


def blocks(kind: Kind) -> str:
    """For each block along the rows, steps of their own: bases are both operands, the result, room for copies, and one.

    The last block begins earlier where it would not be whole: what it shares with the one before is done twice, by the
    same piece.
    """
    s = Step("blocks", kind)
    bases = s.raw("alloca [5 x ptr]")
    slots = [s.at(bases, 8 * number) for number in range(5)]
    operands = [s.base(operand) for operand in "abc"]
    batches, rows = ([s.table(f"{what}_{operand}") for operand in "abc"] for what in ("batch", "row"))
    size, block = s.field("rows"), s.field("row_block")
    first, some = s.share(1, size)
    last = s.test("eq", s.let("add", "%piece", 1), "%pieces")
    end = s.raw(f"select i1 {last}, i64 {size}, i64 {some}")
    latest = s.let("sub", size, block)
    s.do(f"store ptr %scratch, ptr {slots[3]}")
    s.do(f"store ptr @number_one, ptr {slots[4]}")
    scratch = s.at("%scratch", s.field("room"))
    records, count = s.table("records"), s.field("parts")
    with s.loop(*s.share(0, s.field("batch"))) as n, s.loop(first, end, block) as i:
        start = s.least(i, latest)
        for slot, base, batch, row in zip(slots, operands, batches, rows, strict=False):
            s.do(f"store ptr {s.at(s.at(base, s.word(batch, n)), s.word(row, start))}, ptr {slot}")
        s.do(f"call void @work(ptr {records}, i64 {count}, ptr {bases}, ptr {scratch}, i64 1, ptr null)")
    s.do("ret void")
    one = ", ".join(f"{kind.real} {x}" for x in ("1.0", "0.0")[: kind.parts])
    return f"@number_one = private constant [{kind.parts} x {kind.real}] [ {one} ]\n" + s.text()
