"""The entry of small contractions: a built-in function from arrays to a new array, without Python between.

Its ``self`` is a tuple: ``bytes`` with the address of the numbers of `NUMBERS`, what does everything else, and what
must live as long. Exact arrays of the dtype, with the shapes and strides that the numbers tell, are contracted here,
with intermediate values on the stack. Everything else is handed on, untouched: so is every call before there are
numbers.
"""

from collections.abc import Sequence
from typing import Any, Final

from tenferro_cpu.native.contraction._code import Code, Kind
from tenferro_cpu.native.python._layout import BYTES, DATA, DESCR, DIMS, NDIM, STRIDES, TYPE

OPERANDS: Final = 6
"""Most operands."""

ROOM: Final = 128
"""Most numbers."""

STACK: Final = 16 << 10
"""Most bytes of intermediate values and packed panels."""

NUMBERS: Final = ("operands", "descr", "one", "records", "steps", "scratch", "axes", "shape")
"""Numbers in order: that of operands; addresses of the dtype, of the number one, of the records; the number of
records, where panels begin; axes of the result, and where its extents stand. For each operand follow the number of its
axes, where its extents stand, and where its strides; then all these extents and strides."""


def numbers(known: dict[str, int], shape: Sequence[int], operands: Sequence[tuple[Any, Any]]) -> list[int]:
    """All numbers, for the extents of the result, and extents and strides of the operands."""
    at = len(NUMBERS) + 3 * len(operands)
    heads: list[int] = []
    rest: list[int] = []
    for extents, strides in operands:
        start = at + len(rest)
        heads += (len(extents), start, start + len(extents))
        rest += (*extents, *strides)
    known = known | {"operands": len(operands), "axes": len(shape), "shape": at + len(rest)}
    return [*[known[name] for name in NUMBERS], *heads, *rest, *shape]


def enter(kind: Kind, tuple_items: int) -> str:
    """``PyObject *enter(self, args, nargs)``; `tuple_items` is where the items of a tuple begin."""
    code = Code("enter", "ptr %self, ptr %args, i64 %n", kind.host.attributes, "ptr")
    bases = code.raw(f"alloca [{OPERANDS + 3} x ptr]")
    arena = code.raw(f"alloca [{STACK} x i8], align 64")
    job = code.raw("alloca [4 x i64]")
    numbers_at = code.pointer(code.at(code.raw(f"load ptr, ptr {code.at('%self', tuple_items)}"), BYTES), 0)
    word = {name: code.word(numbers_at, n) for n, name in enumerate(NUMBERS)}
    descr = code.pointer(numbers_at, NUMBERS.index("descr"))
    _require(code, code.test("eq", "%n", word["operands"]))
    with code.loop(0, "%n") as i:
        array = code.pointer("%args", i)
        head = code.let("add", code.let("mul", i, 3), len(NUMBERS))
        axes, extents, strides = (code.word(numbers_at, code.let("add", head, n)) for n in range(3))
        _require(code, _same(code, code.raw(f"load ptr, ptr {code.at(array, TYPE)}"), "@tenferro_ndarray"))
        _require(code, _same(code, code.raw(f"load ptr, ptr {code.at(array, DESCR)}"), descr))
        count = code.raw(f"load i32, ptr {code.at(array, NDIM)}")
        _require(code, code.test("eq", code.raw(f"sext i32 {count} to i64"), axes))
        seen = [code.raw(f"load ptr, ptr {code.at(array, field)}") for field in (DIMS, STRIDES)]
        with code.loop(0, axes) as k:
            for found, wanted in zip(seen, (extents, strides), strict=True):
                expected = code.word(numbers_at, code.let("add", wanted, k))
                _require(code, code.test("eq", code.word(found, k), expected))
        data = code.raw(f"load ptr, ptr {code.at(array, DATA)}")
        _store(code, bases, i, data)
    code.do(f"call void @tenferro_incref(ptr {descr})")
    shape = code.raw(f"getelementptr i64, ptr {numbers_at}, i64 {word['shape']}")
    axes = code.raw(f"trunc i64 {word['axes']} to i32")
    result = code.raw(
        f"call ptr @tenferro_new_from_descr(ptr @tenferro_ndarray, ptr {descr}, i32 {axes}, ptr {shape}, ptr null, "
        "ptr null, i32 0, ptr null)"
    )
    with code.when(_same(code, result, "null")):
        code.do("ret ptr null")
        code.begin(code.new_label("never"))
    places = (arena, code.raw(f"load ptr, ptr {code.at(result, DATA)}"), code.pointer(numbers_at, NUMBERS.index("one")))
    for after, place in enumerate(places):
        _store(code, bases, code.let("add", "%n", after), place)
    records = code.pointer(numbers_at, NUMBERS.index("records"))
    scratch = code.at(arena, word["scratch"])
    code.do(f"call void @work(ptr {records}, i64 {word['steps']}, ptr {bases}, ptr {scratch}, i64 1, ptr {job})")
    code.do(f"ret ptr {result}")
    code.begin("slow")
    other = code.raw(f"load ptr, ptr {code.at('%self', tuple_items + 8)}")
    code.do(f"ret ptr {code.raw(f'call ptr @tenferro_vectorcall(ptr {other}, ptr %args, i64 %n, ptr null)')}")
    return code.text("")


def _same(code: Code, x: str, y: str) -> str:
    return code.raw(f"icmp eq ptr {x}, {y}")


def _require(code: Code, condition: str) -> None:
    """Hand the call on where the condition does not hold."""
    label = code.new_label("good")
    code.do(f"br i1 {condition}, label %{label}, label %slow")
    code.begin(label)


def _store(code: Code, bases: str, number: str, value: str) -> None:
    code.do(f"store ptr {value}, ptr {code.raw(f'getelementptr ptr, ptr {bases}, i64 {number}')}")
