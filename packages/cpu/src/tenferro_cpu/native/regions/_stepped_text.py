"""The text of a kernel that carries out any region step by step.

For one block of elements after the other it calls one row kernel for each step; the values between them lie in a
scratch area that stays in the cache.

It is ``void(ptr frame, i64 n, ptr context, i64, ptr)``, as kernels of rows are, but for the context, which says what
to do.
"""

from typing import Final

from tenferro_cpu.native.kernels._body import Body, Fields, Loop, item

BLOCK: Final = 512
"""Elements of the largest block; blocks are multiples of 64, so that scratch places begin with cache lines."""

HEAD: Final = Fields("steps places scratch block")
"""Numbers of steps and places, bytes of scratch for each element of a block, elements of a block."""

PLACE: Final = Fields("kind where hop")
"""Where a value lies, as below, and how many bytes its next element is away."""

FRAME, SCRATCH, CONSTANT = range(3)
"""Kinds of places: an operand by its number; bytes of scratch before it, for each element of a block; an address."""

STEP: Final = Fields("kernel first second third fourth")
"""A row kernel, and the places of its operands, then of its result; those it has not are some place."""


def stepped_text() -> str:
    """LLVM text of the function ``stepped``."""
    b = Body("void @stepped(ptr %frame, i64 %n, ptr %context, i64 %rows, ptr %unused)")
    start, k, passed = b.variable("i64"), b.variable("i64"), b.variable("[4 x ptr]")
    steps, places, scratch = (b.load("%context", at, "i64") for at in (HEAD.steps, HEAD.places, HEAD.scratch))
    whole = b.get(f"and i64 {b.get('add i64 %n, 63')}, -64")
    most = b.load("%context", HEAD.block, "i64")
    block = b.get(f"call i64 @llvm.smin.i64(i64 {whole}, i64 {most})")
    area = b.get(f"alloca i8, i64 {b.get(f'mul i64 {scratch}, {block}')}, align 64")
    now = b.get(f"alloca i64, i64 {places}, align 16")
    table = b.at("%context", 8 * len(HEAD.names))
    program = b.at(table, b.get(f"mul i64 {places}, {8 * len(PLACE.names)}"))
    with Loop(b, k, places, "place") as i:
        place = b.at(table, b.get(f"mul i64 {i}, {8 * len(PLACE.names)}"))
        where = b.load(place, PLACE.where, "i64")
        b.do(
            f"switch i64 {b.load(place, PLACE.kind, 'i64')}, label %constant "
            f"[ i64 {FRAME}, label %operand i64 {SCRATCH}, label %between ]"
        )
        b.label("operand")
        b.store(b.load(item(b, "%frame", where)), item(b, now, i))
        b.jump("placed")
        b.label("between")
        b.store(b.at(area, b.get(f"mul i64 {where}, {block}")), item(b, now, i))
        b.jump("placed")
        b.label("constant")
        b.store(where, item(b, now, i), kind="i64")
        b.jump("placed")
        b.label("placed")
    b.store("0", start, kind="i64")
    b.jump("next")
    b.label("next")
    at = b.load(start, kind="i64")
    left = b.get(f"sub i64 %n, {at}")
    b.guard(b.get(f"icmp sgt i64 {left}, 0"), "done")
    length = b.get(f"call i64 @llvm.smin.i64(i64 {left}, i64 {block})")
    with Loop(b, k, steps, "step") as i:
        step = b.at(program, b.get(f"mul i64 {i}, {8 * len(STEP.names)}"))
        for slot, field in enumerate(STEP.names[1:]):
            index = b.load(step, getattr(STEP, field), "i64")
            b.store(b.load(item(b, now, index)), passed, 8 * slot)
        b.do(f"call void {b.load(step, STEP.kernel)}(ptr {passed}, i64 {length}, ptr null, i64 1, ptr null)")
    with Loop(b, k, places, "move") as i:
        hop = b.load(b.at(table, b.get(f"mul i64 {i}, {8 * len(PLACE.names)}")), PLACE.hop, "i64")
        slot_at = item(b, now, i)
        b.store(b.at(b.load(slot_at), b.get(f"mul i64 {hop}, {block}")), slot_at)
    b.store(b.get(f"add i64 {at}, {block}"), start, kind="i64")
    b.jump("next")
    b.label("done")
    b.do("ret void")
    return "declare i64 @llvm.smin.i64(i64, i64)\n" + b.text()
