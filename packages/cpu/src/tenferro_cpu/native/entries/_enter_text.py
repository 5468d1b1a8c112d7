"""LLVM text of the way into a compiled function: from its tensors to its kernels without the interpreter.

It does what the rendered entry of the runtime does where all arguments are concrete tensors of known specs and no
scope is open; everything else is handed on as it came. A program of one step reaches its kernel directly.
"""

from typing import Final

from tenferro_cpu.native.entries._operators_text import Offsets
from tenferro_cpu.native.kernels._body import Body, Fields, Loop, item
from tenferro_cpu.native.python._layout import BYTES

ENTER: Final = Fields("table recent slow tensor scopes scopes_name tiered")
"""Items of the tuple that the function gets as its ``self``."""

HIT: Final = Fields("run values spec finish fresh direct specs")
"""Items of what the table holds."""

DIRECT: Final = Fields("kernel order extras equation")
"""Items of the only step of a program."""

MOST: Final = 16
"""Arguments, and operands of the only step."""

DECLARED: Final = """
@tenferro_none = external global i8
@tenferro_zero = external global i8
declare ptr @tenferro_list_get(ptr, i64)
declare i32 @tenferro_list_set(ptr, i64, ptr)
"""


def enter_text(at: Offsets) -> str:
    """``enter(self, args, nargs)``: the result of a compiled function for positional arguments."""
    b = Body("ptr @enter(ptr %self, ptr %args, i64 %nargs)")
    hit_at, k, given, chosen = b.variable(), b.variable("i64"), b.variable(f"[{MOST + 2} x i64]"), b.variable()
    passed, m = b.variable(f"[{MOST} x i64]"), b.variable("i64")
    tensor, table = (b.load("%self", at["tuple"] + field) for field in (ENTER.tensor, ENTER.table))
    b.guard(b.get(f"icmp ult i64 {b.get('sub i64 %nargs, 1')}, {MOST}"), "slow")
    with Loop(b, k, "%nargs", "class") as i:
        b.require([(b.type_of(b.load(item(b, "%args", i))), tensor)], "slow")
    scopes, name = (b.load("%self", at["tuple"] + field) for field in (ENTER.scopes, ENTER.scopes_name))
    b.require([(b.call("tenferro_get_item", scopes, name), "@tenferro_zero")], "slow")
    recent = b.load("%self", at["tuple"] + ENTER.recent)
    _seen_just_now(b, at, recent, hit_at, k)
    _look_up(b, at, table, hit_at, k)
    b.present(b.load(hit_at), "slow")
    b.hold(b.load(hit_at))
    b.call("tenferro_list_set", recent, "i64 0", b.load(hit_at), result="i32")
    b.jump("found")
    b.label("found")
    # Another thread may empty the table, or change what a tensor holds, while kernels run: the reference is ours.
    hit = b.load(hit_at)
    b.tuple_of(hit, len(HIT.names), "stale")
    run, values, spec, finish, fresh, direct = (b.load(hit, at["tuple"] + 8 * i) for i in range(6))
    b.branch(b.same(fresh, "@tenferro_none"), "known", "ask")
    b.label("ask")
    same = b.call("tenferro_vectorcall", fresh, given, "i64 0", "null")
    b.present(same, "failed")
    b.drop(same)
    b.branch(b.same(same, "@tenferro_false"), "stale", "known")
    b.label("stale")
    b.drop(hit)
    b.jump("slow")
    b.label("known")
    b.store(values, given)
    raws = b.at(given, 8)
    with Loop(b, k, "%nargs", "raw") as i:
        raw = b.slot(b.load(item(b, "%args", i)), at["tensor._data"], "bare")
        b.hold(raw)
        b.store(raw, item(b, raws, i))
    b.branch(b.same(direct, "@tenferro_none"), "program", "step")
    b.label("program")
    count = b.get("add i64 %nargs, 1")
    whole = b.call("tenferro_vectorcall", run, given, f"i64 {count}", "null")
    b.jump("done")
    b.label("step")
    b.tuple_of(direct, len(DIRECT.names), "odd")
    kernel, order, extras = (b.load(direct, at["tuple"] + 8 * i) for i in range(3))
    tier = b.load("%self", at["tuple"] + ENTER.tiered)
    b.store(kernel, chosen)
    b.branch(b.same(b.type_of(kernel), tier), "tiers", "plain")
    b.label("tiers")
    b.store(b.slot(kernel, at["tiered.run"], "odd"), chosen)
    b.jump("plain")
    b.label("plain")
    function = b.load(chosen)
    b.hold(function)
    operands = b.get(f"zext i8 {b.load(order, BYTES, 'i8')} to i64")
    with Loop(b, k, operands, "operand") as i:
        index = b.get(f"zext i8 {b.load(b.at(b.at(order, i), BYTES + 1), kind='i8')} to i64")
        inside = b.get(f"icmp ult i64 {index}, %nargs")
        extra = item(b, b.at(extras, at["tuple"]), b.get(f"sub i64 {index}, %nargs"))
        source = b.get(f"select i1 {inside}, ptr {item(b, raws, index)}, ptr {extra}")
        b.store(b.load(source), item(b, passed, i))
    alone = b.call("tenferro_vectorcall", function, passed, f"i64 {operands}", "null")
    b.drop(function)
    b.jump("done")
    b.label("done")
    result = b.get(f"phi ptr [ {whole}, %program ], [ {alone}, %operand.end ]")
    with Loop(b, k, "%nargs", "drop") as i:
        b.drop(b.load(item(b, raws, i)))
    b.present(result, "failed")
    b.branch(b.same(spec, "@tenferro_none"), "several", "one")
    b.label("one")
    z = b.call("wrapped", tensor, result, spec)
    b.drop(hit)
    b.give(z)
    b.label("several")
    b.store(result, given)
    made = b.call("tenferro_vectorcall", finish, given, "i64 1", "null")
    b.drop(result, hit)
    b.give(made)
    b.label("failed")
    b.drop(hit)
    b.give("null")
    b.label("odd")
    b.store("%nargs", k, kind="i64")
    b.jump("bare")
    b.label("bare")
    with Loop(b, m, b.load(k, kind="i64"), "undo") as i:
        b.drop(b.load(item(b, raws, i)))
    b.jump("stale")
    _slow(b, at, given, k)
    return b.text()


def _seen_just_now(b: Body, at: Offsets, recent: str, hit_at: str, k: str) -> None:
    """Go to `found` where the call before had the same specs."""
    hit = b.call("tenferro_list_get", recent, "i64 0")
    b.present(hit, "emptied")
    b.branch(b.same(hit, "@tenferro_none"), "look", "compare")
    b.label("emptied")
    b.call("tenferro_clear", result="void")
    b.jump("look")
    b.label("compare")
    b.tuple_of(hit, len(HIT.names), "look")
    specs = b.load(hit, at["tuple"] + HIT.specs)
    b.tuple_of(specs, "%nargs", "look")
    with Loop(b, k, "%nargs", "spec_of") as i:
        own = b.load(b.load(item(b, "%args", i)), at["tensor.spec"])
        b.require([(own, b.load(item(b, b.at(specs, at["tuple"]), i)))], "look")
    b.hold(hit)
    b.store(hit, hit_at)
    b.jump("found")
    b.label("look")


def _look_up(b: Body, at: Offsets, table: str, hit_at: str, k: str) -> None:
    """Leave in `hit_at` what the table has for the spec, or the tuple of specs."""
    b.branch(b.get("icmp eq i64 %nargs, 1"), "single", "many")
    b.label("single")
    b.store(b.call("known", table, b.slot(b.load("%args"), at["tensor.spec"], "slow")), hit_at)
    b.jump("looked")
    b.label("many")
    key = b.call("tenferro_tuple", "i64 %nargs")
    b.present(key, "out_of_memory")
    with Loop(b, k, "%nargs", "spec") as i:
        spec = b.slot(b.load(item(b, "%args", i)), at["tensor.spec"], "unspecified")
        b.hold(spec)
        b.store(spec, item(b, b.at(key, at["tuple"]), i))
    b.store(b.call("known", table, key), hit_at)
    b.drop(key)
    b.jump("looked")
    b.label("unspecified")
    b.drop(key)
    b.jump("slow")
    b.label("looked")


def _slow(b: Body, at: Offsets, frame: str, k: str) -> None:
    """The blocks that hand the arguments on as a tuple."""
    b.label("slow")
    # Also tells whoever meets an error that it was not a kernel that was reached from here.
    b.hold("@tenferro_none")
    recent = b.load("%self", at["tuple"] + ENTER.recent)
    b.call("tenferro_list_set", recent, "i64 0", "@tenferro_none", result="i32")
    whole = b.call("tenferro_tuple", "i64 %nargs")
    b.present(whole, "out_of_memory")
    with Loop(b, k, "%nargs", "argument") as i:
        x = b.load(item(b, "%args", i))
        b.hold(x)
        b.store(x, item(b, b.at(whole, at["tuple"]), i))
    b.store(whole, frame)
    r = b.call("tenferro_vectorcall", b.load("%self", at["tuple"] + ENTER.slow), frame, "i64 1", "null")
    b.drop(whole)
    b.give(r)
    b.label("out_of_memory")
    b.give("null")
