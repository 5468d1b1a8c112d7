"""LLVM text of the reverse sweep: the loop over nodes, from cotangents of outputs to cotangents of leaves."""

from typing import Final

from tenferro_cpu.native.entries._operators_text import Offsets
from tenferro_cpu.native.kernels._body import Body, Fields

SWEEP: Final = Fields("leaf pick released collect add sort tensor sums empty")
"""Items of the tuple that the function gets as its ``self``."""

_SIZE: Final = 16
"""Where a tuple keeps its size."""

DECLARED: Final = """
@tenferro_none = external global i8
declare ptr @tenferro_values(ptr)
declare ptr @tenferro_to_tuple(ptr)
declare ptr @tenferro_set(ptr)
declare i32 @tenferro_set_add(ptr, ptr)
declare i64 @tenferro_set_size(ptr)
declare i32 @tenferro_list_append(ptr, ptr)
declare i32 @tenferro_list_set(ptr, i64, ptr)
declare ptr @tenferro_list_get(ptr, i64)
declare i64 @tenferro_list_size(ptr)
declare i32 @tenferro_set_item(ptr, ptr, ptr)
declare i32 @tenferro_del_item(ptr, ptr)
declare i64 @tenferro_long_as_long(ptr, ptr)
"""


def sweep_text(at: Offsets) -> str:
    """``reachable``, the nodes below some, newest first; ``sweep``, of (cotangents, release, place of an error)."""
    return _place(at) + _reachable(at) + _total(at) + _spread(at) + _sweep(at)


def _item(f: Body, at: Offsets, name: str) -> str:
    return f.load("%self", at["tuple"] + getattr(SWEEP, name))


def _each(f: Body, counter: str, bound: str, name: str, otherwise: str) -> str:
    """The head of a loop over 0, 1, ... below `bound`; the number. The slot counts; ``next_<name>`` goes on."""
    f.store("-1", counter, kind="i64")
    f.jump(f"next_{name}")
    f.label(f"next_{name}")
    i = f.get(f"add i64 {f.load(counter, kind='i64')}, 1")
    f.store(i, counter, kind="i64")
    f.guard(f.get(f"icmp slt i64 {i}, {bound}"), otherwise)
    return i


def _place(at: Offsets) -> str:
    """The place of a node in the order of recording, as a number."""
    f = Body("private i64 @place(ptr %node)")
    overflow = f.variable("i32")
    n = f.call("tenferro_long_as_long", f.load("%node", at["node.seq"]), overflow, result="i64")
    f.do(f"ret i64 {n}")
    return f.text()


def _reachable(at: Offsets) -> str:
    """A list of the roots and all nodes below them but leaves, the newest first; a new reference."""
    f = Body("private ptr @reachable(ptr %self, ptr %roots)")
    i, j, last, sorted_ = f.variable("i64"), f.variable("i64"), f.variable("i64"), f.variable("i1")
    leaf = _item(f, at, "leaf")
    order = f.call("tenferro_values", "%roots")
    f.present(order, "none")
    seen = f.call("tenferro_set", "%roots")
    f.present(seen, "failed")
    count = f.call("tenferro_list_size", order, result="i64")
    f.store(f.get(f"icmp eq i64 {count}, 1"), sorted_, kind="i1")
    f.store(str(2**63 - 1), last, kind="i64")
    f.store("-1", i, kind="i64")
    f.jump("next_node")
    f.label("next_node")
    n = f.get(f"add i64 {f.load(i, kind='i64')}, 1")
    f.store(n, i, kind="i64")
    size = f.call("tenferro_list_size", order, result="i64")
    f.guard(f.get(f"icmp slt i64 {n}, {size}"), "walked")
    node = f.call("tenferro_list_get", order, f"i64 {n}")
    parents = f.load(node, at["node.parents"])
    m = _each(f, j, f.load(parents, _SIZE, "i64"), "parent", "next_node")
    parent = f.load(f.at(parents, f.get(f"shl i64 {m}, 3")), at["tuple"])
    f.branch(f.same(f.load(parent, at["node.pull"]), leaf), "next_parent", "inner")
    f.label("inner")
    before = f.call("tenferro_set_size", seen, result="i64")
    f.call("tenferro_set_add", seen, parent, result="i32")
    after = f.call("tenferro_set_size", seen, result="i64")
    f.guard(f.get(f"icmp sgt i64 {after}, {before}"), "next_parent")
    f.call("tenferro_list_append", order, parent, result="i32")
    place = f.call("place", parent, result="i64")
    falls = f.get(f"icmp slt i64 {place}, {f.load(last, kind='i64')}")
    f.store(f.get(f"and i1 {falls}, {f.load(sorted_, kind='i1')}"), sorted_, kind="i1")
    f.store(place, last, kind="i64")
    f.jump("next_parent")
    f.label("walked")
    f.drop(seen)
    f.branch(f.load(sorted_, kind="i1"), "done", "sort")
    f.label("sort")
    r = f.call("call_2", _item(f, at, "sort"), order, "@tenferro_none")
    f.present(r, "failed")
    f.drop(r)
    f.jump("done")
    f.label("done")
    f.give(order)
    f.label("failed")
    f.drop(order)
    f.jump("none")
    f.label("none")
    f.give("null")
    return f.text()


def _total(at: Offsets) -> str:
    """The sum of two cotangents: by the kernel where both are concrete and of one spec."""
    f = Body("private ptr @total(ptr %self, ptr %x, ptr %y)")
    tensor = _item(f, at, "tensor")
    f.require([(f.type_of("%x"), tensor), (f.type_of("%y"), tensor)], "slow")
    spec = f.load("%x", at["tensor.spec"])
    f.require([(spec, f.load("%y", at["tensor.spec"]))], "slow")
    plan = f.call("tenferro_get_item", _item(f, at, "sums"), spec)
    f.present(plan, "slow")
    run, x, y = f.load(plan, at["plan.run"]), f.load("%x", at["tensor._data"]), f.load("%y", at["tensor._data"])
    f.hold(run, spec, x, y)
    data = f.call("call_2", run, x, y)
    f.drop(run, x, y)
    f.present(data, "failed")
    z = f.call("wrapped", tensor, data, spec)
    f.drop(spec)
    f.give(z)
    f.label("failed")
    f.drop(spec)
    f.give("null")
    f.label("slow")
    f.give(f.call("call_2", _item(f, at, "add"), "%x", "%y"))
    return f.text()


def _spread(at: Offsets) -> str:
    """Add what a node pulled to the cotangents of its parents; false with an error."""
    f = Body("private i1 @spread(ptr %self, ptr %cotangents, ptr %parents, ptr %pulled)")
    k = f.variable("i64")
    one, two = f.load("%parents", _SIZE, "i64"), f.load("%pulled", _SIZE, "i64")
    fewer = f.get(f"icmp slt i64 {one}, {two}")
    i = _each(f, k, f.get(f"select i1 {fewer}, i64 {one}, i64 {two}"), "parent", "done")
    offset = f.get(f"shl i64 {i}, 3")
    c = f.load(f.at("%pulled", offset), at["tuple"])
    f.branch(f.same(c, "@tenferro_none"), "next_parent", "there")
    f.label("there")
    parent = f.load(f.at("%parents", offset), at["tuple"])
    have = f.call("tenferro_get_item", "%cotangents", parent)
    f.branch(f.same(have, "null"), "first", "more")
    f.label("first")
    bad = f.call("tenferro_set_item", "%cotangents", parent, c, result="i32")
    f.branch(f.get(f"icmp eq i32 {bad}, 0"), "next_parent", "failed")
    f.label("more")
    f.hold(have)
    total = f.call("total", "%self", have, c)
    f.drop(have)
    f.present(total, "failed")
    worse = f.call("tenferro_set_item", "%cotangents", parent, total, result="i32")
    f.drop(total)
    f.branch(f.get(f"icmp eq i32 {worse}, 0"), "next_parent", "failed")
    f.label("done")
    f.do("ret i1 true")
    f.label("failed")
    f.do("ret i1 false")
    return f.text()


def _sweep(at: Offsets) -> str:
    f = Body("ptr @sweep(ptr %self, ptr %args, i64 %nargs)")
    i, frame = f.variable("i64"), f.variable("[3 x ptr]")
    cotangents, release, where = (f.load("%args", 8 * n) for n in range(3))
    leaf, pick, released, empty = (_item(f, at, name) for name in ("leaf", "pick", "released", "empty"))
    releasing = f.get(f"icmp ne ptr {release}, @tenferro_none")
    order = f.call("reachable", "%self", cotangents)
    f.present(order, "none")
    n = _each(f, i, f.call("tenferro_list_size", order, result="i64"), "node", "done")
    node = f.call("tenferro_list_get", order, f"i64 {n}")
    pull = f.load(node, at["node.pull"])
    f.branch(f.same(pull, leaf), "next_node", "inner")
    f.label("inner")
    g = f.call("tenferro_get_item", cotangents, node)
    f.branch(f.same(g, "null"), "after", "reached")
    f.label("reached")
    f.hold(g)
    f.call("tenferro_del_item", cotangents, node, result="i32")
    f.branch(f.same(pull, pick), "picked", "usual")

    f.label("picked")
    for place, value in enumerate((cotangents, node, g)):
        f.store(value, frame, 8 * place)
    collected = f.call("tenferro_vectorcall", _item(f, at, "collect"), frame, "i64 3", "null")
    f.drop(g)
    f.present(collected, "failed")
    f.drop(collected)
    f.jump("after")

    f.label("usual")
    saved, parents = f.load(node, at["node.saved"]), f.load(node, at["node.parents"])
    f.hold(pull, saved, parents)
    pulled = f.call("call_2", pull, g, saved)
    f.drop(pull, saved, g)
    f.present(pulled, "unpulled")
    plain = f.call("tenferro_to_tuple", pulled)
    f.drop(pulled)
    f.present(plain, "unpulled")
    good = f.call("spread", "%self", cotangents, parents, plain, result="i1")
    f.drop(plain, parents)
    f.branch(good, "after", "failed")
    f.label("unpulled")
    f.drop(parents)
    f.hold(node)
    f.call("tenferro_list_set", where, "i64 0", node, result="i32")
    f.jump("failed")

    f.label("after")
    f.guard(releasing, "next_node")
    for slot, value in (("pull", released), ("parents", empty), ("saved", "@tenferro_none")):
        old = f.load(node, at[f"node.{slot}"])
        f.hold(value)
        f.store(value, node, at[f"node.{slot}"])
        f.drop(old)
    f.jump("next_node")
    f.label("done")
    f.drop(order)
    f.hold("@tenferro_none")
    f.give("@tenferro_none")
    f.label("failed")
    f.drop(order)
    f.jump("none")
    f.label("none")
    f.give("null")
    return f.text()
