"""LLVM text of pullbacks: a short program of kernel calls on raw arrays, between unwrapping and wrapping.

The function gets as ``self`` a tuple: its program as ``bytes``, the interpreted pullback, and the objects that the
program names by offset. Words of the program are 64 bits wide; values live in registers: first the raw cotangent,
then the saved values, then constants and results.
"""

from typing import Final

from tenferro_cpu.native.entries._operators_text import Offsets
from tenferro_cpu.native.kernels._body import Body, Fields
from tenferro_cpu.native.python._layout import BYTES

PULL: Final = Fields("code fallback tensor scopes scopes_name")
"""The first items of the tuple; other objects follow."""

DECLARED: Final = """
@tenferro_zero = external global i8
"""

HEAD: Final = Fields("saved mask constants steps outs first_result")
"""The first words: number of saved values, which of them are tensors, and how many entries of each kind follow."""

CONSTANT, STEP, OUT = 16, 56, 24
"""Bytes of a constant (register, object), a step (function, count, four registers, result), an output (kind,
register, spec)."""

REGISTERS: Final = 48
ABSENT, GIVEN, MADE = range(3)
"""Kinds of outputs: no cotangent; an operand as it is; a register, wrapped."""


def pull_text(at: Offsets) -> str:
    """``pull``, of (cotangent, saved values)."""
    f = Body("ptr @pull(ptr %self, ptr %args, i64 %nargs)")
    frame, arguments = f.variable(f"[{REGISTERS} x ptr]"), f.variable("[4 x ptr]")
    i, j, held = f.variable("i64"), f.variable("i64"), f.variable("i64")
    here = f.variable()
    f.guard(f.get("icmp eq i64 %nargs, 2"), "slow")
    objects = f.at("%self", at["tuple"])
    p = f.at(f.load(objects, PULL.code), BYTES)
    g, saved = f.load("%args"), f.load("%args", 8)
    tensor = f.load(objects, PULL.tensor)
    opened = f.call("tenferro_get_item", f.load(objects, PULL.scopes), f.load(objects, PULL.scopes_name))
    count = f.load(p, HEAD.saved, "i64")
    f.require([(f.type_of(g), tensor), (opened, "@tenferro_zero")], "slow")
    f.tuple_of(saved, count, "slow")
    raw = f.slot(g, at["tensor._data"], "slow")
    f.hold(raw)
    f.store(raw, frame)
    f.store("1", held, kind="i64")
    mask = f.load(p, HEAD.mask, "i64")

    def loop(counter: str, bound: str, name: str, after: str) -> str:
        f.store("-1", counter, kind="i64")
        f.jump(f"next_{name}")
        f.label(f"next_{name}")
        n = f.get(f"add i64 {f.load(counter, kind='i64')}, 1")
        f.store(n, counter, kind="i64")
        f.guard(f.get(f"icmp slt i64 {n}, {bound}"), after)
        return n

    def register(number: str) -> str:
        return f.at(frame, f.get(f"shl i64 {number}, 3"))

    n = loop(i, count, "saved", "constants")
    value = f.load(f.at(saved, f.get(f"shl i64 {n}, 3")), at["tuple"])
    place = f.at(register(n), 8)
    bit = f.get(f"and i64 {f.get(f'lshr i64 {mask}, {n}')}, 1")
    f.branch(f.get(f"icmp ne i64 {bit}, 0"), "array", "bare")
    f.label("array")
    f.require([(f.type_of(value), tensor)], "unfit")
    inside = f.slot(value, at["tensor._data"], "unfit")
    f.store(inside, place)
    f.jump("held")
    f.label("bare")
    f.store(value, place)
    f.jump("held")
    f.label("held")
    f.hold(f.load(place))
    f.store(f.get(f"add i64 {n}, 2"), held, kind="i64")
    f.jump("next_saved")

    f.label("constants")
    start = f.at(p, 8 * len(HEAD.names))
    f.store(start, here)
    loop(i, f.load(p, HEAD.constants, "i64"), "constant", "steps")
    c = f.load(here)
    f.store(f.load(objects, f.load(c, 8, "i64")), register(f.load(c, 0, "i64")))
    f.store(f.at(c, CONSTANT), here)
    f.jump("next_constant")

    f.label("steps")
    loop(i, f.load(p, HEAD.steps, "i64"), "step", "outs")
    s = f.load(here)
    for k in range(4):
        f.store(f.load(register(f.load(s, 16 + 8 * k, "i64"))), arguments, 8 * k)
    function, many = f.load(objects, f.load(s, 0, "i64")), f.load(s, 8, "i64")
    result = f.call("tenferro_vectorcall", function, arguments, f"i64 {many}", "null")
    f.store(result, register(f.load(s, 48, "i64")))
    f.store(f.at(s, STEP), here)
    f.branch(f.same(result, "null"), "failed", "next_step")

    f.label("outs")
    made = f.load(p, HEAD.steps, "i64")
    total = f.load(p, HEAD.outs, "i64")
    answer = f.call("tenferro_tuple", f"i64 {total}")
    f.present(answer, "failed")
    m = loop(j, total, "out", "finish")
    o = f.load(here)
    kind, number = f.load(o, 0, "i64"), f.load(o, 8, "i64")
    slot = f.at(f.at(answer, f.get(f"shl i64 {m}, 3")), at["tuple"])
    f.store(f.at(o, OUT), here)
    f.do(f"switch i64 {kind}, label %absent [ i64 {GIVEN}, label %given i64 {MADE}, label %made ]")
    f.label("absent")
    f.hold("@tenferro_none")
    f.store("@tenferro_none", slot)
    f.jump("next_out")
    f.label("given")
    f.branch(f.get(f"icmp eq i64 {number}, 0"), "cotangent", "operand")
    f.label("cotangent")
    f.hold(g)
    f.store(g, slot)
    f.jump("next_out")
    f.label("operand")
    kept = f.load(f.at(saved, f.get(f"shl i64 {number}, 3")), at["tuple"] - 8)
    f.hold(kept)
    f.store(kept, slot)
    f.jump("next_out")
    f.label("made")
    data = f.load(register(number))
    f.hold(data)
    z = f.call("wrapped", tensor, data, f.load(objects, f.load(o, 16, "i64")))
    f.store(z, slot)
    f.branch(f.same(z, "null"), "out_of_memory", "next_out")

    def let_go(results: str) -> None:
        """Give up the operands, and so many results."""
        f.call("let_go", frame, "i64 0", f"i64 {f.load(held, kind='i64')}", result="void")
        first = f.load(p, HEAD.first_result, "i64")
        f.call("let_go", frame, f"i64 {first}", f"i64 {results}", result="void")

    f.label("out_of_memory")
    f.drop(answer)
    let_go(made)
    f.give("null")
    f.label("finish")
    let_go(made)
    f.give(answer)
    f.label("failed")
    let_go(f.load(i, kind="i64"))
    f.call("tenferro_clear", result="void")
    f.jump("slow")
    f.label("unfit")
    f.call("let_go", frame, "i64 0", f"i64 {f.load(held, kind='i64')}", result="void")
    f.jump("slow")
    f.label("slow")
    fallback = f.load("%self", at["tuple"] + PULL.fallback)
    f.give(f.call("tenferro_vectorcall", fallback, "%args", "i64 %nargs", "null"))
    return _let_go() + f.text()


def _let_go() -> str:
    """Give up registers from `first` on."""
    f = Body("private void @let_go(ptr %frame, i64 %first, i64 %count)")
    i = f.variable("i64")
    f.store("0", i, kind="i64")
    f.jump("next")
    f.label("next")
    n = f.load(i, kind="i64")
    f.guard(f.get(f"icmp slt i64 {n}, %count"), "done")
    place = f.get(f"shl i64 {f.get(f'add i64 {n}, %first')}, 3")
    f.drop(f.load(f.at("%frame", place)))
    f.store(f.get(f"add i64 {n}, 1"), i, kind="i64")
    f.jump("next")
    f.label("done")
    f.do("ret void")
    return f.text()
