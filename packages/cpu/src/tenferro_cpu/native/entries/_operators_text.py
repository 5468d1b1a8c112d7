"""LLVM text of the operator methods of concrete and of recorded tensors: the short way, from operands to kernel.

Each says what the interpreted method says where everything is as usual; anything else goes to that method. A
payload holds the objects that one operator needs; ``thunk_<i>`` is the C function that a method descriptor calls,
and finds its payload in a table.
"""

from typing import Final

from tenferro_cpu.native.kernels._body import Body, Fields

PAYLOAD: Final = Fields(
    "tensor scopes scopes_name zero method same plans op unary_name "
    "eager node modes modes_name both mixed left right unary count save_both save_left save_right"
)
"""What operators read: of concrete tensors the first line, of recorded ones everything."""

DECLARED: Final = """
@tenferro_float = external global i8
@tenferro_int = external global i8
@tenferro_complex = external global i8
declare void @tenferro_incref(ptr)
declare void @tenferro_decref(ptr)
declare ptr @tenferro_vectorcall(ptr, ptr, i64, ptr)
declare ptr @tenferro_alloc(ptr, i64)
declare ptr @tenferro_get_item(ptr, ptr)
declare ptr @tenferro_tuple(i64)
declare ptr @tenferro_next(ptr)
declare ptr @tenferro_get_attr(ptr, ptr)
declare ptr @tenferro_apply(ptr, ptr, ptr)
declare void @tenferro_clear()
@tenferro_false = external global i8
"""


class Offsets(dict[str, int]):
    """Where slots of Python classes lie, by ``class.slot``, and where the items of a tuple start."""


def shared_text(at: Offsets) -> str:
    """Functions that all shortcuts use."""
    return _pair(at) + _triple(at) + _call_1() + _call_2() + _wrapped(at)


def _pair(at: Offsets) -> str:
    """The value under a pair in a dictionary, borrowed, or null."""
    f = Body("private ptr @pair(ptr %table, ptr %x, ptr %y)")
    key = f.call("tenferro_tuple", "i64 2")
    f.present(key, "none")
    f.hold("%x", "%y")
    f.store("%x", key, at["tuple"])
    f.store("%y", key, at["tuple"] + 8)
    found = f.call("tenferro_get_item", "%table", key)
    f.drop(key)
    f.give(found)
    f.label("none")
    f.call("tenferro_clear", result="void")
    f.give("null")
    return f.text()


def _triple(at: Offsets) -> str:
    """The value under three keys in a dictionary, borrowed, or null."""
    f = Body("private ptr @triple(ptr %table, ptr %x, ptr %y, ptr %z)")
    key = f.call("tenferro_tuple", "i64 3")
    f.present(key, "none")
    f.hold("%x", "%y", "%z")
    for place, value in enumerate(("%x", "%y", "%z")):
        f.store(value, key, at["tuple"] + 8 * place)
    found = f.call("tenferro_get_item", "%table", key)
    f.drop(key)
    f.give(found)
    f.label("none")
    f.call("tenferro_clear", result="void")
    f.give("null")
    return f.text()


def _call_1() -> str:
    f = Body("private ptr @call_1(ptr %function, ptr %x)")
    frame = f.variable()
    f.store("%x", frame)
    f.give(f.call("tenferro_vectorcall", "%function", frame, "i64 1", "null"))
    return f.text()


def _call_2() -> str:
    f = Body("private ptr @call_2(ptr %function, ptr %x, ptr %y)")
    frame = f.variable("[2 x ptr]")
    f.store("%x", frame)
    f.store("%y", frame, 8)
    f.give(f.call("tenferro_vectorcall", "%function", frame, "i64 2", "null"))
    return f.text()


def _wrapped(at: Offsets) -> str:
    """A tensor of raw data, which it takes over, and a spec; null with an error where memory is out."""
    f = Body("private ptr @wrapped(ptr %class, ptr %data, ptr %spec)")
    z = f.call("tenferro_alloc", "%class", "i64 0")
    f.present(z, "failed")
    f.hold("%spec")
    f.store("%data", z, at["tensor._data"])
    f.store("%spec", z, at["tensor.spec"])
    f.give(z)
    f.label("failed")
    f.drop("%data")
    f.give("null")
    return f.text()


def unscoped(f: Body, otherwise: str) -> None:
    """Go on where no scope selects a device."""
    scopes = f.load("%p", PAYLOAD.scopes)
    opened = f.call("tenferro_get_item", scopes, f.load("%p", PAYLOAD.scopes_name))
    f.guard(f.same(opened, f.load("%p", PAYLOAD.zero)), otherwise)


def is_number(f: Body, kind: str) -> str:
    """Whether a class is that of Python's numbers; booleans go the long way."""
    one = f.same(kind, "@tenferro_float")
    two = f.same(kind, "@tenferro_int")
    three = f.same(kind, "@tenferro_complex")
    return f.get(f"or i1 {f.get(f'or i1 {one}, {two}')}, {three}")


def long_way(f: Body) -> None:
    """The block that calls the interpreted method."""
    f.label("slow")
    f.give(f.call("call_2", f.load("%p", PAYLOAD.method), "%self", "%other"))


def _answer(f: Body, tensor: str, data: str, out: str) -> None:
    """The blocks that give a kernel's result as a tensor, or take the long way where it failed."""
    f.present(data, "failed")
    z = f.call("wrapped", tensor, data, out)
    f.drop(out)
    f.give(z)
    f.label("failed")
    # The interpreted way meets the same error, and words it.
    f.drop(out)
    f.call("tenferro_clear", result="void")
    f.jump("slow")
    long_way(f)


def tensor_text(at: Offsets) -> str:
    """``tensor_operator``, ``tensor_reflected``, ``tensor_unary`` of a tensor and an op, and ``op_call``."""
    operators = "".join([_tensor(at, reflected) for reflected in (False, True)])
    return operators + _unary(at) + _long_call(at) + _seen(at) + _op_call(at)


def _long_call(at: Offsets) -> str:
    """Call the interpreted function with an op and its operands."""
    f = Body("private ptr @long_call(ptr %function, ptr %self, ptr %args, i64 %nargs)")
    i = f.variable("i64")
    whole = f.call("tenferro_tuple", f"i64 {f.get('add i64 %nargs, 1')}")
    f.present(whole, "failed")
    items = f.at(whole, at["tuple"])
    f.hold("%self")
    f.store("%self", items)
    f.store("0", i, kind="i64")
    f.jump("next")
    f.label("next")
    n = f.load(i, kind="i64")
    f.guard(f.get(f"icmp slt i64 {n}, %nargs"), "done")
    offset = f.get(f"shl i64 {n}, 3")
    value = f.load(f.at("%args", offset))
    f.hold(value)
    f.store(value, f.at(items, offset), 8)
    f.store(f.get(f"add i64 {n}, 1"), i, kind="i64")
    f.jump("next")
    f.label("done")
    r = f.call("tenferro_apply", "%function", whole, "null")
    f.drop(whole)
    f.give(r)
    f.label("failed")
    f.give("null")
    return f.text()


def _seen(at: Offsets) -> str:
    """What a plan knows of an operand and what its kernel gets: spec and data, or class and number; null for others."""
    f = Body("private ptr @seen(ptr %x, ptr %tensor, ptr %raw)")
    kind = f.type_of("%x")
    f.branch(f.same(kind, "%tensor"), "concrete", "number")
    f.label("concrete")
    f.store(f.load("%x", at["tensor._data"]), "%raw")
    f.give(f.load("%x", at["tensor.spec"]))
    f.label("number")
    f.guard(is_number(f, kind), "other")
    f.store("%x", "%raw")
    f.give(kind)
    f.label("other")
    f.give("null")
    return f.text()


def _op_call(at: Offsets) -> str:
    """An op applied to one operand, to two concrete ones, or to three that are concrete or numbers."""
    f = Body("private ptr @op_call(ptr %self, ptr %args, i64 %nargs, ptr %p)")
    plan_at, frame = f.variable(), f.variable("[3 x ptr]")
    slots = [frame, f.at(frame, 8), f.at(frame, 16)]
    f.guard(f.same(f.type_of("%self"), f.load("%p", PAYLOAD.op)), "slow")
    tensor = f.load("%p", PAYLOAD.tensor)
    f.do("switch i64 %nargs, label %slow [ i64 1, label %one i64 2, label %two i64 3, label %three ]")
    f.label("one")
    x = f.load("%args")
    f.branch(f.same(f.type_of(x), tensor), "concrete", "other")
    f.label("other")
    # Values of every kind have a method for ops of one operand; numbers and arrays have none.
    method = f.call("tenferro_get_attr", f.type_of(x), f.load("%p", PAYLOAD.unary_name))
    f.present(method, "unknown")
    r = f.call("call_2", method, x, "%self")
    f.drop(method)
    f.give(r)
    f.label("unknown")
    f.call("tenferro_clear", result="void")
    f.jump("slow")
    f.label("concrete")
    unscoped(f, "slow")
    f.store(f.call("tenferro_get_item", f.load("%self", at["op.one"]), f.load(x, at["tensor.spec"])), plan_at)
    # The frame is three operands long: those that are not there repeat the first.
    for slot in slots:
        f.store(f.load(x, at["tensor._data"]), slot)
    f.jump("found")
    f.label("two")
    unscoped(f, "slow")
    pair = []
    for place, slot in enumerate(slots[:2]):
        pair.append(f.call("seen", f.load("%args", 8 * place), tensor, slot))
        f.present(pair[-1], "slow")
    spec, spec_y = pair
    f.store(f.load(slots[0]), slots[2])
    first = f.same(f.type_of(f.load("%args")), tensor)
    f.branch(f.get(f"and i1 {first}, {f.same(spec, spec_y)}"), "same", "mixed")
    f.label("same")
    f.store(f.call("tenferro_get_item", f.load("%self", at["op.same"]), spec), plan_at)
    f.jump("found")
    f.label("mixed")
    f.store(f.call("pair", f.load("%self", at["op.plans"]), spec, spec_y), plan_at)
    f.jump("found")
    f.label("three")
    unscoped(f, "slow")
    keys = []
    for place, slot in enumerate(slots):
        keys.append(f.call("seen", f.load("%args", 8 * place), tensor, slot))
        f.present(keys[-1], "slow")
    f.store(f.call("triple", f.load("%self", at["op.plans"]), *keys), plan_at)
    f.jump("found")
    f.label("found")
    plan = f.load(plan_at)
    f.present(plan, "slow")
    f.guard(f.same(f.load(plan, at["plan.many"]), "@tenferro_false"), "slow")
    run, out = f.load(plan, at["plan.run"]), f.load(plan, at["plan.out"])
    raws = [f.load(slot) for slot in slots]
    f.hold(run, out, *raws)
    data = f.call("tenferro_vectorcall", run, frame, "i64 %nargs", "null")
    f.drop(run, *raws)
    f.present(data, "failed")
    z = f.call("wrapped", tensor, data, out)
    f.drop(out)
    f.give(z)
    f.label("failed")
    f.drop(out)
    f.call("tenferro_clear", result="void")
    f.jump("slow")
    f.label("slow")
    f.give(f.call("long_call", f.load("%p", PAYLOAD.method), "%self", "%args", "i64 %nargs"))
    return f.text()


def _unary(at: Offsets) -> str:
    f = Body("private ptr @tensor_unary(ptr %self, ptr %other, ptr %p)")
    tensor = f.load("%p", PAYLOAD.tensor)
    f.require([(f.type_of("%self"), tensor), (f.type_of("%other"), f.load("%p", PAYLOAD.op))], "slow")
    unscoped(f, "slow")
    spec, x = f.load("%self", at["tensor.spec"]), f.load("%self", at["tensor._data"])
    plan = f.call("tenferro_get_item", f.load("%other", at["op.one"]), spec)
    f.present(plan, "slow")
    run, out = f.load(plan, at["plan.run"]), f.load(plan, at["plan.out"])
    f.hold(run, out, x)
    data = f.call("call_1", run, x)
    f.drop(run, x)
    _answer(f, tensor, data, out)
    return f.text()


def _tensor(at: Offsets, reflected: bool) -> str:
    name = "reflected" if reflected else "operator"
    f = Body(f"private ptr @tensor_{name}(ptr %self, ptr %other, ptr %p)")
    plan, second = f.variable(), f.variable()
    tensor = f.load("%p", PAYLOAD.tensor)
    f.require([(f.type_of("%self"), tensor)], "slow")
    unscoped(f, "slow")
    spec, x = f.load("%self", at["tensor.spec"]), f.load("%self", at["tensor._data"])
    kind, plans = f.type_of("%other"), f.load("%p", PAYLOAD.plans)
    f.store("%other", second)
    if not reflected:
        f.branch(f.same(kind, tensor), "tensor", "number")
        f.label("tensor")
        spec_y = f.load("%other", at["tensor.spec"])
        f.store(f.load("%other", at["tensor._data"]), second)
        f.branch(f.same(spec, spec_y), "same", "mixed")
        f.label("same")
        f.store(f.call("tenferro_get_item", f.load("%p", PAYLOAD.same), spec), plan)
        f.jump("found")
        f.label("mixed")
        f.store(f.call("pair", plans, spec, spec_y), plan)
        f.jump("found")
        f.label("number")
    f.guard(is_number(f, kind), "slow")
    f.store(f.call("pair", plans, *([kind, spec] if reflected else [spec, kind])), plan)
    f.jump("found")
    f.label("found")
    chosen, y = f.load(plan), f.load(second)
    f.present(chosen, "slow")
    run, out = f.load(chosen, at["plan.run"]), f.load(chosen, at["plan.out"])
    # While a kernel runs without the lock, another thread may drop the plan, and the operands.
    f.hold(run, out, x, y)
    data = f.call("call_2", run, *([y, x] if reflected else [x, y]))
    f.drop(run, x, y)
    _answer(f, tensor, data, out)
    return f.text()


def thunks(generics: list[str]) -> str:
    """The table of payloads and one function for each of its places, which hands over to a generic one."""
    lines = [
        f"@table = internal global [{len(generics)} x ptr] zeroinitializer",
        "define ptr @payloads() { ret ptr @table }",
    ]
    for i, generic in enumerate(generics):
        more = ", i64 %nargs" if generic == "op_call" else ""
        lines += [
            f"define ptr @thunk_{i}(ptr %self, ptr %other{more}) {{",
            f"  %p = load ptr, ptr getelementptr (i8, ptr @table, i64 {8 * i})",
            f"  %r = tail call ptr @{generic}(ptr %self, ptr %other{more}, ptr %p)",
            "  ret ptr %r",
            "}",
        ]
    return "\n".join(lines) + "\n"
