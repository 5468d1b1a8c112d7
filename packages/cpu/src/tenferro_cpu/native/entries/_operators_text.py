"""LLVM text of the operator methods of concrete and of recorded tensors: the short way, from operands to kernel.

Each says what the interpreted method says where everything is as usual; anything else goes to that method. A
payload holds the objects that one operator needs; ``thunk_<i>`` is the C function that a method descriptor calls,
and finds its payload in a table.
"""

from typing import Final

from tenferro_cpu.native.kernels._body import Body, Fields

PAYLOAD: Final = Fields(
    "tensor scopes scopes_name zero method same plans op unary_name plan "
    "eager node pullback modes modes_name both mixed left right unary count save_both save_left save_right"
)
"""What operators read: of concrete tensors the first line, of recorded ones everything."""

DECLARED: Final = """
@tenferro_float = external global i8
@tenferro_int = external global i8
@tenferro_complex = external global i8
@tenferro_tuple_class = external global i8
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
    return _found() + _pair(at) + _triple(at) + _call_1() + _call_2() + _wrapped(at) + _raw(at)


def _found() -> str:
    """The value under a key in a dictionary, a new reference, or null: of a table that is held, and of any."""
    # Comparing keys may run code that drops the key, the table, and what is found.
    known = Body("private ptr @known(ptr %table, ptr %key)")
    known.hold("%key")
    value = known.call("tenferro_get_item", "%table", "%key")
    known.hold(value)
    known.drop("%key")
    known.give(value)
    found = Body("private ptr @found(ptr %table, ptr %key)")
    found.hold("%table")
    value = found.call("known", "%table", "%key")
    found.drop("%table")
    found.give(value)
    return known.text() + found.text()


def _pair(at: Offsets) -> str:
    """The value under a pair in a dictionary, a new reference, or null."""
    f = Body("private ptr @pair(ptr %table, ptr %x, ptr %y)")
    key = f.call("tenferro_tuple", "i64 2")
    f.present(key, "none")
    f.hold("%x", "%y")
    f.store("%x", key, at["tuple"])
    f.store("%y", key, at["tuple"] + 8)
    found = f.call("found", "%table", key)
    f.drop(key)
    f.give(found)
    f.label("none")
    f.call("tenferro_clear", result="void")
    f.give("null")
    return f.text()


def _triple(at: Offsets) -> str:
    """The value under three keys in a dictionary, a new reference, or null."""
    f = Body("private ptr @triple(ptr %table, ptr %x, ptr %y, ptr %z)")
    key = f.call("tenferro_tuple", "i64 3")
    f.present(key, "none")
    f.hold("%x", "%y", "%z")
    for place, value in enumerate(("%x", "%y", "%z")):
        f.store(value, key, at["tuple"] + 8 * place)
    found = f.call("found", "%table", key)
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
    f.hold("%spec")  # before memory is allocated, when code may run
    z = f.call("tenferro_alloc", "%class", "i64 0")
    f.present(z, "failed")
    f.store("%data", z, at["tensor._data"])
    f.store("%spec", z, at["tensor.spec"])
    f.give(z)
    f.label("failed")
    f.drop("%data", "%spec")
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


def kernel_of(f: Body, at: Offsets, plan: str) -> str:
    """Kernel of an object that should be a forward plan, borrowed."""
    f.require([(f.type_of(plan), f.load("%p", PAYLOAD.plan))], "failed")
    return f.slot(plan, at["plan.run"], "failed")


def _answer(f: Body, at: Offsets, tensor: str, data: str, plan_at: str) -> None:
    """The blocks that give a kernel's result as a tensor, or take the slow path where it failed; the plan is ours."""
    f.present(data, "failed")
    plan = f.load(plan_at)
    out = f.slot(plan, at["plan.out"], "emptied")
    z = f.call("wrapped", tensor, data, out)
    f.drop(plan)
    f.give(z)
    f.label("emptied")
    f.drop(data)
    f.jump("failed")
    f.label("failed")
    # The interpreted method meets the same error, and words it.
    f.drop(f.load(plan_at))
    f.call("tenferro_clear", result="void")
    f.jump("slow")


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
    """What a plan knows of an operand, borrowed: spec, or class of a number; null for others."""
    f = Body("private ptr @seen(ptr %x, ptr %tensor)")
    kind = f.type_of("%x")
    f.branch(f.same(kind, "%tensor"), "concrete", "number")
    f.label("concrete")
    f.give(f.load("%x", at["tensor.spec"]))
    f.label("number")
    f.guard(is_number(f, kind), "other")
    f.give(kind)
    f.label("other")
    f.give("null")
    return f.text()


def _raw(at: Offsets) -> str:
    """What a kernel gets of an operand, borrowed: raw data, or the number; null where there are no data."""
    f = Body("private ptr @raw(ptr %x, ptr %tensor)")
    f.branch(f.same(f.type_of("%x"), "%tensor"), "concrete", "number")
    f.label("concrete")
    f.give(f.load("%x", at["tensor._data"]))
    f.label("number")
    f.give("%x")
    return f.text()


def _op_call(at: Offsets) -> str:
    """An op applied to one operand, to two concrete ones, or to three that are concrete or numbers."""
    f = Body("private ptr @op_call(ptr %self, ptr %args, i64 %nargs, ptr %p)")
    plan_at, data_at, frame = f.variable(), f.variable(), f.variable("[3 x ptr]")
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
    table = f.slot("%self", at["op.one"], "slow")
    plan = f.call("found", table, f.slot(x, at["tensor.spec"], "slow"))
    f.store(plan, plan_at)
    f.present(plan, "slow")
    run, raw = kernel_of(f, at, plan), f.slot(x, at["tensor._data"], "failed")
    f.guard(f.same(f.load(plan, at["plan.many"]), "@tenferro_false"), "failed")
    f.hold(run, raw)
    alone = f.call("call_1", run, raw)
    f.drop(run, raw)
    f.store(alone, data_at)
    f.jump("ran")
    f.label("two")
    unscoped(f, "slow")
    pair = []
    for place in range(2):
        pair.append(f.call("seen", f.load("%args", 8 * place), tensor))
        f.present(pair[-1], "slow")
    spec, spec_y = pair
    first = f.same(f.type_of(f.load("%args")), tensor)
    f.branch(f.get(f"and i1 {first}, {f.same(spec, spec_y)}"), "same", "mixed")
    f.label("same")
    f.store(f.call("found", f.slot("%self", at["op.same"], "slow"), spec), plan_at)
    f.jump("found")
    f.label("mixed")
    f.store(f.call("pair", f.slot("%self", at["op.plans"], "slow"), spec, spec_y), plan_at)
    f.jump("found")
    f.label("three")
    unscoped(f, "slow")
    keys = []
    for place in range(3):
        keys.append(f.call("seen", f.load("%args", 8 * place), tensor))
        f.present(keys[-1], "slow")
    f.store(f.call("triple", f.slot("%self", at["op.plans"], "slow"), *keys), plan_at)
    f.jump("found")
    f.label("found")
    plan = f.load(plan_at)
    f.present(plan, "slow")
    run = kernel_of(f, at, plan)
    f.guard(f.same(f.load(plan, at["plan.many"]), "@tenferro_false"), "failed")
    # The frame is three operands long: a third that is not there repeats the first.
    raws = []
    for place, slot in enumerate(slots):
        there = f.get(f"select i1 {f.get(f'icmp ult i64 {place}, %nargs')}, i64 {8 * place}, i64 0")
        raws.append(f.call("raw", f.load("%args", there), tensor))
        f.present(raws[-1], "failed")
        f.store(raws[-1], slot)
    f.hold(run, *raws)
    f.store(f.call("tenferro_vectorcall", run, frame, "i64 %nargs", "null"), data_at)
    f.drop(run, *raws)
    f.jump("ran")
    f.label("ran")
    _answer(f, at, tensor, f.load(data_at), plan_at)
    f.label("slow")
    f.give(f.call("long_call", f.load("%p", PAYLOAD.method), "%self", "%args", "i64 %nargs"))
    return f.text()


def _unary(at: Offsets) -> str:
    f = Body("private ptr @tensor_unary(ptr %self, ptr %other, ptr %p)")
    plan_at = f.variable()
    tensor = f.load("%p", PAYLOAD.tensor)
    f.require([(f.type_of("%self"), tensor), (f.type_of("%other"), f.load("%p", PAYLOAD.op))], "slow")
    unscoped(f, "slow")
    table = f.slot("%other", at["op.one"], "slow")
    plan = f.call("found", table, f.slot("%self", at["tensor.spec"], "slow"))
    f.store(plan, plan_at)
    f.present(plan, "slow")
    run = kernel_of(f, at, plan)
    x = f.slot("%self", at["tensor._data"], "failed")
    f.hold(run, x)
    data = f.call("call_1", run, x)
    f.drop(run, x)
    _answer(f, at, tensor, data, plan_at)
    long_way(f)
    return f.text()


def _tensor(at: Offsets, reflected: bool) -> str:
    name = "reflected" if reflected else "operator"
    f = Body(f"private ptr @tensor_{name}(ptr %self, ptr %other, ptr %p)")
    plan_at = f.variable()
    tensor = f.load("%p", PAYLOAD.tensor)
    f.require([(f.type_of("%self"), tensor)], "slow")
    unscoped(f, "slow")
    spec = f.slot("%self", at["tensor.spec"], "slow")
    kind, plans = f.type_of("%other"), f.load("%p", PAYLOAD.plans)
    if not reflected:
        f.branch(f.same(kind, tensor), "tensor", "number")
        f.label("tensor")
        spec_y = f.slot("%other", at["tensor.spec"], "slow")
        f.branch(f.same(spec, spec_y), "same", "mixed")
        f.label("same")
        f.store(f.call("known", f.load("%p", PAYLOAD.same), spec), plan_at)
        f.jump("found")
        f.label("mixed")
        f.store(f.call("pair", plans, spec, spec_y), plan_at)
        f.jump("found")
        f.label("number")
    f.guard(is_number(f, kind), "slow")
    f.store(f.call("pair", plans, *([kind, spec] if reflected else [spec, kind])), plan_at)
    f.jump("found")
    f.label("found")
    plan = f.load(plan_at)
    f.present(plan, "slow")
    run = kernel_of(f, at, plan)
    x = f.slot("%self", at["tensor._data"], "failed")
    y = f.call("raw", "%other", tensor)
    f.present(y, "failed")
    # While a kernel runs without the lock, another thread may drop the plan, and the operands.
    f.hold(run, x, y)
    data = f.call("call_2", run, *([y, x] if reflected else [x, y]))
    f.drop(run, x, y)
    _answer(f, at, tensor, data, plan_at)
    long_way(f)
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
