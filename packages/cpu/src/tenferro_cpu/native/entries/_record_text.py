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
    """The recorded value of a result; takes over all that it is given but the payload."""
    f = Body("private ptr @recorded(ptr %p, ptr %level, ptr %mine, ptr %partner, ptr %z, ptr %pull, ptr %kept)")
    node, made = f.variable(), f.variable()
    f.store("null", node)
    f.store("null", made)
    f.present("%kept", "lost")
    n = f.call("tenferro_alloc", f.load("%p", PAYLOAD.node), "i64 0")
    f.store(n, node)
    f.present(n, "lost")
    r = f.call("tenferro_alloc", f.load("%p", PAYLOAD.eager), "i64 0")
    f.store(r, made)
    f.present(r, "lost")
    seq = f.call("tenferro_next", f.load("%p", PAYLOAD.count))
    f.store(seq, n, at["node.seq"])
    f.present(seq, "lost")
    is_one = f.same("%partner", "null")
    parents = f.call("tenferro_tuple", f"i64 {f.get(f'select i1 {is_one}, i64 1, i64 2')}")
    f.present(parents, "lost")
    out = f.load("%z", at["tensor.spec"])
    f.hold(out)
    f.store("%mine", parents, at["tuple"])
    f.branch(is_one, "linked", "two")
    f.label("two")
    f.store("%partner", parents, at["tuple"] + 8)
    f.jump("linked")
    f.label("linked")
    for slot, value in zip(("pull", "parents", "saved"), ("%pull", parents, "%kept"), strict=True):
        f.store(value, n, at[f"node.{slot}"])
    for slot, value in zip(("value", "spec", "level", "node"), ("%z", out, "%level", n), strict=True):
        f.store(value, r, at[f"eager.{slot}"])
    f.give(r)
    f.label("lost")
    f.drop("%level", "%mine", "%partner", "%z", "%pull", "%kept", f.load(node), f.load(made))
    f.give("null")
    return f.text()


def _entry_parts(f: Body, at: Offsets, entry: str) -> tuple[str, ...]:
    """Kernel, spec, and the tuple that says how to pull, of an object that should be an entry; borrowed."""
    f.tuple_of(entry, 3, "unfit")
    run, out, plan = (f.load(entry, at["tuple"] + 8 * i) for i in range(3))
    f.require([(f.type_of(plan), f.load("%p", PAYLOAD.pullback))], "unfit")
    how = f.slot(plan, at["pullback.how"], "unfit")
    f.tuple_of(how, 3, "unfit")
    return run, out, how


def _recorded_parts(f: Body, at: Offsets, x: str, tensor: str) -> tuple[str, ...]:
    """The concrete value inside of a recorded one, its raw data, and its node; borrowed."""
    value = f.slot(x, at["eager.value"], "unfit")
    f.require([(f.type_of(value), tensor)], "unfit")
    return value, f.slot(value, at["tensor._data"], "unfit"), f.slot(x, at["eager.node"], "unfit")


def _usual(f: Body) -> tuple[str, str]:
    """Go on where nothing special is asked; the classes of recorded and of concrete values."""
    eager, tensor = f.load("%p", PAYLOAD.eager), f.load("%p", PAYLOAD.tensor)
    slow = f.call("tenferro_get_item", f.load("%p", PAYLOAD.modes), f.load("%p", PAYLOAD.modes_name))
    f.require([(f.type_of("%self"), eager), (slow, f.load("%p", PAYLOAD.zero))], "slow")
    unscoped(f, "slow")
    return eager, tensor


def _unfinished(f: Body, entry: str, *held: str) -> None:
    """The blocks for what is lost without memory, for kernels that fail, and for entries that are none."""
    f.label("lost")
    f.drop(*held)
    f.give("null")
    f.label("failed")
    f.drop(*held)
    f.call("tenferro_clear", result="void")
    f.jump("slow")
    f.label("unfit")
    f.drop(entry)
    f.jump("slow")
    long_way(f)


def _unary(at: Offsets) -> str:
    f = Body("private ptr @record_unary(ptr %self, ptr %other, ptr %p)")
    _, tensor = _usual(f)
    entry = f.call("pair", f.load("%p", PAYLOAD.unary), "%other", f.slot("%self", at["eager.spec"], "slow"))
    f.present(entry, "slow")
    run, out, how = _entry_parts(f, at, entry)
    x, raw, node = _recorded_parts(f, at, "%self", tensor)
    level = f.slot("%self", at["eager.level"], "unfit")
    pull, keep = (f.load(how, at["tuple"] + 8 * i) for i in (1, 2))
    f.hold(x, raw, node, level, pull, keep)
    data = f.call("call_1", run, raw)
    f.drop(raw)
    f.present(data, "failed")
    z = f.call("wrapped", tensor, data, out)
    f.present(z, "lost")
    kept = f.call("call_2", keep, x, z)
    f.drop(entry, x, keep)
    f.give(f.call("recorded", "%p", level, node, "null", z, pull, kept))
    _unfinished(f, entry, entry, x, node, level, pull, keep)
    return f.text()


def _record(at: Offsets, reflected: bool) -> str:
    name = "reflected" if reflected else "operator"
    f = Body(f"private ptr @record_{name}(ptr %self, ptr %other, ptr %p)")
    entry_at, mask_at, y_at, y_raw_at, partner_at = (f.variable() for _ in range(5))
    eager, tensor = _usual(f)
    spec, level = (f.slot("%self", at[f"eager.{slot}"], "slow") for slot in ("spec", "level"))
    kind = f.type_of("%other")
    if reflected:
        f.guard(is_number(f, kind), "slow")
        f.store(f.call("pair", f.load("%p", PAYLOAD.right), kind, spec), entry_at)
        f.store(f.load("%p", PAYLOAD.save_right, "i64"), mask_at, kind="i64")
        f.jump("found")
    else:
        _two_operands(f, at, kind, spec, level, eager, tensor, (entry_at, mask_at))
    f.label("found")
    entry, mask = f.load(entry_at), f.load(mask_at, kind="i64")
    f.present(entry, "slow")
    run, out, how = _entry_parts(f, at, entry)
    x, x_raw, mine = _recorded_parts(f, at, "%self", tensor)
    level = f.slot("%self", at["eager.level"], "unfit")
    f.branch(f.same(f.type_of("%other"), eager), "two_recorded", "one_recorded")
    f.label("two_recorded")
    for value, place in zip(_recorded_parts(f, at, "%other", tensor), (y_at, y_raw_at, partner_at), strict=True):
        f.store(value, place)
    f.jump("run")
    f.label("one_recorded")
    raw = f.call("raw", "%other", tensor)
    f.present(raw, "unfit")
    for value, place in (("%other", y_at), (raw, y_raw_at), ("null", partner_at)):
        f.store(value, place)
    f.jump("run")
    f.label("run")
    y, y_raw, partner = (f.load(place) for place in (y_at, y_raw_at, partner_at))
    pull = f.load(how, at["tuple"] + 8)
    f.hold(x, y, x_raw, y_raw, level, mine, partner, pull)
    data = f.call("call_2", run, *([y_raw, x_raw] if reflected else [x_raw, y_raw]))
    f.drop(x_raw, y_raw)
    f.present(data, "failed")
    z = f.call("wrapped", tensor, data, out)
    f.present(z, "lost")
    kept = f.call("saved", *([y, x] if reflected else [x, y]), z, f"i64 {mask}")
    f.drop(entry, x, y)
    f.give(f.call("recorded", "%p", level, mine, partner, z, pull, kept))
    _unfinished(f, entry, entry, x, y, level, mine, partner, pull)
    return f.text()


def _two_operands(
    f: Body, at: Offsets, kind: str, spec: str, level: str, eager: str, tensor: str, places: tuple[str, str]
) -> None:
    """Find the entry for a recorded, a concrete or a Python number on the right."""
    entry_at, mask_at = places
    f.branch(f.same(kind, eager), "recorded", "plain")
    f.label("recorded")
    f.require([(f.load("%other", at["eager.level"]), level)], "slow")
    f.store(f.load("%p", PAYLOAD.save_both, "i64"), mask_at, kind="i64")
    spec_y = f.slot("%other", at["eager.spec"], "slow")
    f.branch(f.same(spec, spec_y), "same", "mixed")
    f.label("same")
    f.store(f.call("known", f.load("%p", PAYLOAD.both), spec), entry_at)
    f.jump("found")
    f.label("mixed")
    f.store(f.call("pair", f.load("%p", PAYLOAD.mixed), spec, spec_y), entry_at)
    f.jump("found")
    f.label("plain")
    f.store(f.load("%p", PAYLOAD.save_left, "i64"), mask_at, kind="i64")
    left = f.load("%p", PAYLOAD.left)
    f.branch(f.same(kind, tensor), "concrete", "number")
    f.label("concrete")
    # The interpreted method has a tensor that the node keeps copy what others may write to.
    kept = f.get(f"and i64 {f.load('%p', PAYLOAD.save_left, 'i64')}, 2")
    f.branch(f.get(f"icmp eq i64 {kept}, 0"), "lent", "kept")
    f.label("kept")
    f.guard(f.call("owned", f.slot("%other", at["tensor._data"], "slow"), result="i1"), "slow")
    f.jump("lent")
    f.label("lent")
    f.store(f.call("pair", left, spec, f.slot("%other", at["tensor.spec"], "slow")), entry_at)
    f.jump("found")
    f.label("number")
    f.guard(is_number(f, kind), "slow")
    f.store(f.call("pair", left, spec, kind), entry_at)
    f.jump("found")
