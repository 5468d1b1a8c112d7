"""Tables that records point to: machine code against NumPy; what is said of them without filling them."""

from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_rooms import compiled
from tenferro_cpu.native.contraction import _record
from tenferro_cpu.native.contraction._record import CONTIGUOUS, SCATTER
from tenferro_cpu.native.contraction._tables import Flags, Tiles, filled, listed, lying, offsets

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

ITEM = 8
AXES = st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0, 8, -8, 16, 24, 32, 64, 72, 100, 192])), max_size=4)
WIDTHS = st.sampled_from([1, 2, 4, 8])


def expected(pairs):
    """The sums of all combinations, the last axis the fastest."""
    steps = [[k * stride for k in range(n)] for n, stride in pairs]
    return [sum(parts) for parts in product(*steps)]


def together(table, width):
    """For each block, whether its offsets are `ITEM` apart."""
    blocks = [table[k : k + width] for k in range(0, len(table), width)]
    return [all(y - x == ITEM for x, y in pairwise(block)) for block in blocks]


@given(AXES)
def test_offsets(pairs):
    """Any axes."""
    assert listed(offsets(pairs)) == expected(pairs)


def bytes_at(room, address, count):
    """Bytes of a filled table."""
    start = address - room.buffer_info()[0]
    return list(room.tobytes()[start : start + count])


@given(AXES, WIDTHS, st.integers(1, 3))
def test_flags_and_tiles(pairs, width, vectors):
    """Blocks that lie together, and tiles of several blocks."""
    table = offsets(pairs)
    n = table.length
    room, at = filled(
        {
            "before": offsets([(3, 8)]),
            "row": table,
            "flags": Flags("row", n, width, ITEM),
            "tiles": Tiles("row", n, width, ITEM, vectors),
            "after": offsets([(2, 8)]),
        }
    )
    lie = together(expected(pairs), width)
    assert bytes_at(room, at["flags"], len(lie)) == lie
    wanted = []
    for first in range(0, len(lie), vectors):
        mine = lie[first : first + vectors] + [True] * (first + vectors - len(lie))
        bits = sum(CONTIGUOUS << r for r, x in enumerate(mine) if x)
        ragged = n % width != 0 and first + vectors >= len(lie)
        wanted.append(0 if all(mine) and not ragged else SCATTER | bits)
    assert bytes_at(room, at["tiles"], len(wanted)) == wanted
    assert bytes_at(room, at["after"], 16) == [*bytes(8), 8, *bytes(7)]


@given(AXES, WIDTHS)
def test_all_blocks_are_said_to_lie_together_only_where_they_do(pairs, width):
    """Machine code may then read and write whole vectors."""
    said = lying(tuple(pairs), width, ITEM)
    assert 0 <= said <= 1
    if said == 1:
        assert all(together(expected(pairs), width))


@given(st.integers(1, 60), WIDTHS)
def test_the_part_of_blocks_within_runs_is_exact(run, width):
    """Over a whole period of runs and blocks."""
    pairs = ((width, 10_000), (run, ITEM))
    lie = together(expected(pairs), width)
    assert lying(pairs, width, ITEM) == pytest.approx(sum(lie) / len(lie))


def test_all_plans_with_a_step_see_the_same_tables(monkeypatch):
    """Also a plan that is made while another one fills them: its records hold their addresses."""
    step = _record.Step("fill", (4, 1, 1, 0), words={"batch": 4}, fill=lambda: {"batch_c": offsets([(4, 8)])})
    places = ((0, 0), (1, 0), (2, 0))
    within: list[Any] = []

    def meanwhile(tables):
        if not within:
            within.append(None)  # one plan within the other, no more
            within.append(step.record(places))
        return filled(tables)

    monkeypatch.setattr(_record, "filled", meanwhile)
    assert step.record(places) == within[1] == step.record(places)
