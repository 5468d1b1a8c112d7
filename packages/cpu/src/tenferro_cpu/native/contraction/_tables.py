"""Contents of the tables of byte offsets and flags that records point to; `tables.c` fills them."""

from array import array
from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import Any, Final, NamedTuple

from tenferro_cpu.native._extension import compiled

Pairs = tuple[tuple[int, int], ...]
"""Extents and strides of axes, the last axis fastest."""


class Offsets(NamedTuple):
    """Byte offsets over axes.

    Attributes:
        pairs: extent and stride of each axis.
        length: number of offsets.
    """

    pairs: Pairs
    length: int


class Flags(NamedTuple):
    """For each block of offsets of another table, whether they are contiguous; the last may be shorter.

    Attributes:
        of: name of the other table.
        length: its number of offsets.
        width: offsets per block.
        step: distance of consecutive offsets in bytes.
    """

    of: str
    length: int
    width: int
    step: int


class Tiles(NamedTuple):
    """How each tile of rows is stored: 0 for whole vectors, otherwise which of its vectors are contiguous.

    Attributes:
        of: name of the table of rows.
        length: its number of offsets.
        width: rows per vector.
        step: distance of consecutive offsets in bytes.
        vectors: vectors per tile.
    """

    of: str
    length: int
    width: int
    step: int
    vectors: int


Entries = Offsets | Flags | Tiles

PADDING_BYTES: Final = 1 << 10
"""Padding after the last table that machine code may read."""
_OFFSETS, _FLAGS, _TILES = range(3)


def offsets(pairs: Sequence[tuple[int, int]]) -> Offsets:
    """The table of offsets over axes.

    >>> listed(offsets([(2, 100), (3, 8)]))
    [0, 8, 16, 100, 108, 116]
    """
    return Offsets(tuple(pairs), prod([n for n, _ in pairs]))


def listed(table: Offsets) -> list[int]:
    """The contents of a table of offsets."""
    room, at = filled({"one": table})
    first = (at["one"] - room.buffer_info()[0]) // 8
    return list(room[first : first + table.length])


def lying(pairs: Pairs, width: int, step: int) -> float:
    """Fraction of the blocks of `width` offsets that are contiguous, `step` bytes apart; 1.0 only if all are.

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
    """Memory that holds the tables, and the address of each; a table that refers to another comes after it."""
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
    program, room = array("q", words), array("q", bytes(at + PADDING_BYTES))
    start = room.buffer_info()[0]
    if places:
        compiled.contraction_fill_tables(program, len(places), room)
    found = dict.fromkeys(zeros, start)
    for name, place in places.items():
        found[name] = start + place
    return room, found
