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


def _raw(at: Offsets) -> str:
    """What a kernel gets of an operand, borrowed: raw data, or the number; null where there are no data."""
    f = Body("private ptr @raw(ptr %x, ptr %tensor)")
    f.branch(f.same(f.type_of("%x"), "%tensor"), "concrete", "number")
    f.label("concrete")
    f.give(f.load("%x", at["tensor._data"]))
    f.label("number")
    f.give("%x")
    return f.text()
