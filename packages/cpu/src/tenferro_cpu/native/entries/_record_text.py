"""LLVM text of the operators of recorded tensors: run the kernel, leave one node."""

from typing import Final

from tenferro_cpu.native.entries._operators_text import PAYLOAD, Offsets, is_number, long_way, unscoped
from tenferro_cpu.native.kernels._body import Body
from tenferro_cpu.native.python._layout import BASE, TYPE


def record_text(at: Offsets) -> str:
    """``record_operator``, ``record_reflected``, and ``record_unary`` of a recorded value and an op."""
    return (
        _OWNED
        + _saved(at)
        + _recorded(at)
        + "".join([_record(at, reflected) for reflected in (False, True)])
        + _unary(at)
    )


_OWNED: Final = f"""
@tenferro_ndarray = external global i8
define private i1 @owned(ptr %raw) nounwind {{
entry:
  br label %look
look:
  %x = phi ptr [ %raw, %entry ], [ %base, %up ]
  %type_at = getelementptr i8, ptr %x, i64 {TYPE}
  %type = load ptr, ptr %type_at
  %is_array = icmp eq ptr %type, @tenferro_ndarray
  br i1 %is_array, label %up, label %end
up:
  %base_at = getelementptr i8, ptr %x, i64 {BASE}
  %base = load ptr, ptr %base_at
  %owns = icmp eq ptr %base, null
  br i1 %owns, label %yes, label %look
end:
  %scalar = icmp eq ptr %x, %raw
  ret i1 %scalar
yes:
  ret i1 true
}}
"""
"""Whether nobody outside can write to the memory of a raw array, as `tenferro_tensor` tells it."""


def _saved(at: Offsets) -> str:
    """The tuple of those of x, y and z that the bits of a mask name."""
    f = Body("private ptr @saved(ptr %x, ptr %y, ptr %z, i64 %mask)")
    place = f.variable("i64")
    count = f.get("call i64 @llvm.ctpop.i64(i64 %mask)")
    made = f.call("tenferro_tuple", f"i64 {count}")
    f.present(made, "failed")
    f.store(str(at["tuple"]), place, kind="i64")
    for bit, value in enumerate("xyz"):
        wanted = f.get(f"icmp ne i64 {f.get(f'and i64 %mask, {1 << bit}')}, 0")
        f.branch(wanted, f"keep_{value}", f"after_{value}")
        f.label(f"keep_{value}")
        f.hold(f"%{value}")
        here = f.load(place, kind="i64")
        f.store(f"%{value}", made, here)
        f.store(f.get(f"add i64 {here}, 8"), place, kind="i64")
        f.jump(f"after_{value}")
        f.label(f"after_{value}")
    f.give(made)
    f.label("failed")
    f.give("null")
    return f.text()


def _recorded(at: Offsets) -> str:
    """The recorded value of a result and of what its node saves, both of which it takes over."""
    f = Body("private ptr @recorded(ptr %p, ptr %self, ptr %partner, ptr %z, ptr %pull, ptr %kept)")
    f.present("%kept", "lost")
    n, r = (f.call("tenferro_alloc", f.load("%p", c), "i64 0") for c in (PAYLOAD.node, PAYLOAD.eager))
    f.present(n, "lost")
    f.present(r, "lost")
    f.store(f.call("tenferro_next", f.load("%p", PAYLOAD.count)), n, at["node.seq"])
    level, out = f.load("%self", at["eager.level"]), f.load("%z", at["tensor.spec"])
    f.hold("%pull", level, out)
    f.store("%pull", n, at["node.pull"])
    f.store("%kept", n, at["node.saved"])
    is_one = f.same("%partner", "null")
    mine = f.load("%self", at["eager.node"])
    parents = f.call("saved", mine, "%partner", "null", f"i64 {f.get(f'select i1 {is_one}, i64 1, i64 3')}")
    f.store(parents, n, at["node.parents"])
    for slot, value in zip(("value", "spec", "level", "node"), ("%z", out, level, n), strict=True):
        f.store(value, r, at[f"eager.{slot}"])
    f.present(parents, "unfinished")
    f.give(r)
    f.label("unfinished")
    f.drop(r)
    f.give("null")
    f.label("lost")
    f.drop("%z")
    f.give("null")
    return f.text()


def _unary(at: Offsets) -> str:
    f = Body("private ptr @record_unary(ptr %self, ptr %other, ptr %p)")
    eager, tensor = f.load("%p", PAYLOAD.eager), f.load("%p", PAYLOAD.tensor)
    slow = f.call("tenferro_get_item", f.load("%p", PAYLOAD.modes), f.load("%p", PAYLOAD.modes_name))
    f.require([(f.type_of("%self"), eager), (slow, f.load("%p", PAYLOAD.zero))], "slow")
    unscoped(f, "slow")
    x = f.load("%self", at["eager.value"])
    f.require([(f.type_of(x), tensor)], "slow")
    entry = f.call("pair", f.load("%p", PAYLOAD.unary), "%other", f.load("%self", at["eager.spec"]))
    f.present(entry, "slow")
    run, out, plan = (f.load(entry, at["tuple"] + 8 * i) for i in range(3))
    raw = f.load(x, at["tensor._data"])
    f.hold(entry, x, raw)
    data = f.call("call_1", run, raw)
    f.drop(raw)
    f.present(data, "failed")
    z = f.call("wrapped", tensor, data, out)
    f.present(z, "lost")
    how = f.load(plan, at["pullback.how"])
    f.hold(how)
    kept = f.call("call_2", f.load(how, at["tuple"] + 16), x, z)
    r = f.call("recorded", "%p", "%self", "null", z, f.load(how, at["tuple"] + 8), kept)
    f.drop(how, entry, x)
    f.give(r)
    f.label("lost")
    f.drop(entry, x)
    f.give("null")
    f.label("failed")
    f.drop(entry, x)
    f.call("tenferro_clear", result="void")
    f.jump("slow")
    long_way(f)
    return f.text()


def _record(at: Offsets, reflected: bool) -> str:
    name = "reflected" if reflected else "operator"
    f = Body(f"private ptr @record_{name}(ptr %self, ptr %other, ptr %p)")
    entry_at, second, raw, mask_at, partner = (f.variable() for _ in range(5))
    eager, tensor = f.load("%p", PAYLOAD.eager), f.load("%p", PAYLOAD.tensor)
    slow = f.call("tenferro_get_item", f.load("%p", PAYLOAD.modes), f.load("%p", PAYLOAD.modes_name))
    f.require([(f.type_of("%self"), eager), (slow, f.load("%p", PAYLOAD.zero))], "slow")
    unscoped(f, "slow")
    spec, x, level = (f.load("%self", at[f"eager.{slot}"]) for slot in ("spec", "value", "level"))
    f.require([(f.type_of(x), tensor)], "slow")
    kind = f.type_of("%other")
    f.store("%other", second)
    f.store("%other", raw)
    f.store("null", partner)
    if reflected:
        f.guard(is_number(f, kind), "slow")
        f.store(f.call("pair", f.load("%p", PAYLOAD.right), kind, spec), entry_at)
        f.store(f.load("%p", PAYLOAD.save_right, "i64"), mask_at, kind="i64")
        f.jump("found")
    else:
        _two_operands(f, at, kind, spec, level, eager, tensor, (entry_at, second, raw, mask_at, partner))
    f.label("found")
    _run(f, at, reflected, x, tensor, (entry_at, second, raw, mask_at, partner))
    long_way(f)
    return f.text()


def _two_operands(
    f: Body, at: Offsets, kind: str, spec: str, level: str, eager: str, tensor: str, places: tuple[str, ...]
) -> None:
    """Find the entry for a recorded, a concrete or a Python number on the right."""
    entry_at, second, raw, mask_at, partner = places
    f.branch(f.same(kind, eager), "recorded", "plain")
    f.label("recorded")
    f.require([(f.load("%other", at["eager.level"]), level)], "slow")
    y = f.load("%other", at["eager.value"])
    f.require([(f.type_of(y), tensor)], "slow")
    f.store(y, second)
    f.store(f.load(y, at["tensor._data"]), raw)
    f.store(f.load("%other", at["eager.node"]), partner)
    f.store(f.load("%p", PAYLOAD.save_both, "i64"), mask_at, kind="i64")
    spec_y = f.load("%other", at["eager.spec"])
    f.branch(f.same(spec, spec_y), "same", "mixed")
    f.label("same")
    f.store(f.call("tenferro_get_item", f.load("%p", PAYLOAD.both), spec), entry_at)
    f.jump("found")
    f.label("mixed")
    f.store(f.call("pair", f.load("%p", PAYLOAD.mixed), spec, spec_y), entry_at)
    f.jump("found")
    f.label("plain")
    f.store(f.load("%p", PAYLOAD.save_left, "i64"), mask_at, kind="i64")
    left = f.load("%p", PAYLOAD.left)
    f.branch(f.same(kind, tensor), "concrete", "number")
    f.label("concrete")
    f.store(f.load("%other", at["tensor._data"]), raw)
    # The interpreted method has a tensor that the node keeps copy what others may write to.
    kept = f.get(f"and i64 {f.load('%p', PAYLOAD.save_left, 'i64')}, 2")
    f.branch(f.get(f"icmp eq i64 {kept}, 0"), "lent", "kept")
    f.label("kept")
    f.guard(f.call("owned", f.load(raw), result="i1"), "slow")
    f.jump("lent")
    f.label("lent")
    f.store(f.call("pair", left, spec, f.load("%other", at["tensor.spec"])), entry_at)
    f.jump("found")
    f.label("number")
    f.guard(is_number(f, kind), "slow")
    f.store(f.call("pair", left, spec, kind), entry_at)
    f.jump("found")


def _run(f: Body, at: Offsets, reflected: bool, x: str, tensor: str, places: tuple[str, ...]) -> None:
    """From the entry (kernel, spec, plan) to the recorded result."""
    entry, y, y_raw, mask, partner = (
        f.load(place, kind=kind) for place, kind in zip(places, ("ptr", "ptr", "ptr", "i64", "ptr"), strict=True)
    )
    f.present(entry, "slow")
    run, out, plan = (f.load(entry, at["tuple"] + 8 * i) for i in range(3))
    x_raw = f.load(x, at["tensor._data"])
    f.hold(entry, x, y, x_raw, y_raw)
    data = f.call("call_2", run, *([y_raw, x_raw] if reflected else [x_raw, y_raw]))
    f.drop(x_raw, y_raw)
    f.present(data, "failed")
    z = f.call("wrapped", tensor, data, out)
    f.present(z, "lost")
    kept = f.call("saved", *([y, x] if reflected else [x, y]), z, f"i64 {mask}")
    pull = f.load(f.load(plan, at["pullback.how"]), at["tuple"] + 8)
    r = f.call("recorded", "%p", "%self", partner, z, pull, kept)
    f.drop(entry, x, y)
    f.give(r)
    f.label("lost")
    f.drop(entry, x, y)
    f.give("null")
    f.label("failed")
    f.drop(entry, x, y)
    f.call("tenferro_clear", result="void")
    f.jump("slow")
