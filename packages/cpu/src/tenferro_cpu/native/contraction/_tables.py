"""Tables of byte offsets and of flags that records point to: what they hold, and their filling by machine code."""

from array import array
from collections.abc import Mapping, Sequence
from ctypes import CFUNCTYPE, c_int64
from functools import cache
from math import gcd, prod
from typing import Any, Final, NamedTuple

from tenferro_cpu.native.contraction._code import Code
from tenferro_cpu.native.contraction._tile_text import SCATTER, TOGETHER
from tenferro_cpu.native.machine._jit import engine

Pairs = tuple[tuple[int, int], ...]
"""Extents and strides of axes, the last axis the fastest."""


class Offsets(NamedTuple):
    """Byte offsets over axes.

    Attributes:
        pairs: extent and stride of each axis.
        length: number of offsets.
    """

    pairs: Pairs
    length: int


class Flags(NamedTuple):
    """For each block of offsets of another table, whether they lie side by side; the last may be shorter.

    Attributes:
        of: name of the other table.
        length: its number of offsets.
        width: offsets of one block.
        step: bytes from one to the next.
    """

    of: str
    length: int
    width: int
    step: int


class Tiles(NamedTuple):
    """For each tile of rows how it is stored: 0 for whole vectors, else which of its vectors lie together.

    Attributes:
        of: name of the table of rows.
        length: its number of offsets.
        width: rows of one vector.
        step: bytes from one to the next.
        vectors: vectors of one tile.
    """

    of: str
    length: int
    width: int
    step: int
    vectors: int


Entries = Offsets | Flags | Tiles

BEYOND: Final = 1 << 10
"""Bytes after the last table, which machine code may look at."""
_OFFSETS, _FLAGS, _TILES = range(3)


def offsets(pairs: Sequence[tuple[int, int]]) -> Offsets:
    """The table of offsets over axes.

    >>> listed(offsets([(2, 100), (3, 8)]))
    [0, 8, 16, 100, 108, 116]
    """
    return Offsets(tuple(pairs), prod([n for n, _ in pairs]))


def listed(table: Offsets) -> list[int]:
    """What a table of offsets holds."""
    room, at = filled({"one": table})
    first = (at["one"] - room.buffer_info()[0]) // 8
    return list(room[first : first + table.length])


def lying(pairs: Pairs, width: int, step: int) -> float:
    """The part of the blocks of `width` offsets that lie side by side, `step` bytes apart; 1.0 only if all do.

    >>> lying(((2, 100), (4, 8)), 4, 8), lying(((6, 16),), 4, 8), lying(((10, 128), (6, 8)), 4, 8)
    (1.0, 0.0, 0.6666666666666666)
    """
    run, count, after = 1, 1, step
    for n, stride in reversed(pairs):
        if n != 1:
            if run == count and stride == after:
                run *= n
                after *= n
            count *= n
    if run == count or run % width == 0:
        return 1.0
    shared = gcd(run, width)
    return max(0, (run - width) // shared + 1) * shared / run


def filled(tables: Mapping[str, Entries]) -> tuple[Any, dict[str, int]]:
    """Memory that holds the tables, and the address of each; one that refers to another comes after it."""
    words: list[int] = []
    places: dict[str, int] = {}
    zeros: list[str] = []  # tables of one zero share the first word
    at = 8
    for name, table in tables.items():
        if isinstance(table, Offsets):
            pairs, count = table
            if not pairs:
                zeros.append(name)
                continue
            places[name] = at
            words += (_OFFSETS, 4 + 2 * len(pairs), at, len(pairs))
            for pair in reversed(pairs):
                words += pair
            at += 8 * count
        else:
            what, vectors = (_TILES, table.vectors) if isinstance(table, Tiles) else (_FLAGS, 1)
            of, count, width, step = table[:4]
            places[name] = at
            words += (what, 8, at, places.get(of, 0), count, width, step, vectors)
            at += -(-count // (width * vectors)) + 7 & -8
    program, room = array("q", words), array("q", bytes(at + BEYOND))
    start = room.buffer_info()[0]
    if places:
        _tabulate()(program.buffer_info()[0], len(places), start)
    found = dict.fromkeys(zeros, start)
    for name, place in places.items():
        found[name] = start + place
    return room, found


@cache
def _tabulate() -> Any:
    have = engine()
    return CFUNCTYPE(None, c_int64, c_int64, c_int64)(have.function(source(have.host.attributes), "tabulate"))


def source(attributes: str) -> str:
    """``tabulate(program, number of tables, where to)``."""
    code = Code("tabulate", "ptr %program, i64 %count, ptr %to", attributes)
    slots = {name: code.raw("alloca i64") for name in ("next", "size", "bits")}
    _set(code, slots["next"], 0)
    with code.loop(0, "%count"):
        here = code.raw(f"getelementptr i64, ptr %program, i64 {_get(code, slots['next'])}")
        what, size = code.word(here, 0), code.word(here, 1)
        _set(code, slots["next"], code.let("add", _get(code, slots["next"]), size))
        to = code.at("%to", code.word(here, 2))
        for number, write in ((_OFFSETS, _offsets), (_FLAGS, _flags), (_TILES, _tiles)):
            with code.when(code.test("eq", what, number)):
                write(code, slots, here, to)
    code.do("ret void")
    return "declare i64 @llvm.smin.i64(i64, i64)\n" + code.text("")


def _get(code: Code, slot: str) -> str:
    return code.raw(f"load i64, ptr {slot}")


def _set(code: Code, slot: str, value: str | int) -> None:
    code.do(f"store i64 {value}, ptr {slot}")


def _offsets(code: Code, slots: Mapping[str, str], here: str, to: str) -> None:
    """Each axis repeats what is there, moved by its stride; the innermost comes first."""
    axes = code.word(here, 3)
    _set(code, to, 0)
    _set(code, slots["size"], 1)
    with code.loop(0, axes) as k:
        place = code.let("add", code.let("mul", k, 2), 4)
        n, stride = code.word(here, place), code.word(here, code.let("add", place, 1))
        size = _get(code, slots["size"])
        with code.loop(1, n) as i:
            start = code.raw(f"getelementptr i64, ptr {to}, i64 {code.let('mul', i, size)}")
            far = code.let("mul", i, stride)
            with code.loop(0, size) as j:
                entry = code.raw(f"getelementptr i64, ptr {start}, i64 {j}")
                _set(code, entry, code.let("add", code.word(to, j), far))
        _set(code, slots["size"], code.let("mul", size, n))


def _breaks(code: Code, source: str, first: str, end: str, step: str, slot: str, keep: str | int) -> None:
    """Only the bits `keep` stay where two offsets are not `step` apart."""
    with code.loop(code.let("add", first, 1), end) as i:
        apart = code.let("sub", code.word(source, i), code.word(source, code.let("sub", i, 1)))
        with code.when(code.test("ne", apart, step)):
            _set(code, slot, code.let("and", _get(code, slot), keep))


def _store_byte(code: Code, to: str, number: str, value: str) -> None:
    code.do(f"store i8 {code.raw(f'trunc i64 {value} to i8')}, ptr {code.at(to, number)}")


def _flags(code: Code, slots: Mapping[str, str], here: str, to: str) -> None:
    table = code.at("%to", code.word(here, 3))
    count, width, step = (code.word(here, n) for n in range(4, 7))
    blocks = code.let("sdiv", code.let("add", count, code.let("sub", width, 1)), width)
    with code.loop(0, blocks) as b:
        first = code.let("mul", b, width)
        _set(code, slots["bits"], 1)
        _breaks(code, table, first, code.least(code.let("add", first, width), count), step, slots["bits"], 0)
        _store_byte(code, to, b, _get(code, slots["bits"]))


def _tiles(code: Code, slots: Mapping[str, str], here: str, to: str) -> None:
    table = code.at("%to", code.word(here, 3))
    count, width, step, vectors = (code.word(here, n) for n in range(4, 8))
    rows = code.let("mul", width, vectors)
    tiles = code.let("sdiv", code.let("add", count, code.let("sub", rows, 1)), rows)
    every = code.let("mul", code.let("sub", code.let("shl", 1, vectors), 1), TOGETHER)
    ragged = code.test("ne", code.let("srem", count, width), 0)
    with code.loop(0, tiles) as t:
        _set(code, slots["bits"], every)
        with code.loop(0, vectors) as r:
            first = code.let("add", code.let("mul", t, rows), code.let("mul", r, width))
            keep = code.let("xor", code.let("shl", TOGETHER, r), -1)
            end = code.least(code.let("add", first, width), count)
            _breaks(code, table, first, end, step, slots["bits"], keep)
        bits = _get(code, slots["bits"])
        last = code.raw(f"and i1 {ragged}, {code.test('eq', t, code.let('sub', tiles, 1))}")
        apart = code.raw(f"or i1 {last}, {code.test('ne', bits, every)}")
        _store_byte(code, to, t, code.raw(f"select i1 {apart}, i64 {code.let('or', bits, SCATTER)}, i64 0"))
