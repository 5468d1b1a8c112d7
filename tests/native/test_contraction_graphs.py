"""Graphs of contractions in the engine: shared values, sums, diagonals and several outputs, against NumPy."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_pages import require_inside
from native_rooms import compiled
from random_contractions import MIDDLE, SMALL, random_graph
from tenferro_cpu.native.contraction import tuning
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionGraph

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

F8 = np.dtype("float64")


def engine_kernel(graph: ContractionGraph):
    """The engine's kernel; never the reference."""
    kernel = get_backend("cpu").contraction(graph, ComputeDevice("cpu:0"))
    assert kernel is not None
    return kernel


@pytest.mark.parametrize("extents", [SMALL, MIDDLE])
@given(seed=st.integers(0, 1 << 40))
def test_random_graphs(extents, seed):
    """Any labels, dtypes, strides; values taken twice, terms added up, zeros off diagonals."""
    case = random_graph(seed, extents)
    case.require(engine_kernel(case.graph)(*case.arrays))


@pytest.mark.usefixtures("fresh_steps")
def test_small_blocks_and_tables(monkeypatch):
    """Sums and fills in many parts."""
    for name, value in {
        "TABLE_MAX_ROWS": 30,
        "TABLE_MAX_COLUMNS": 20,
        "TABLE_MAX_INNER": 20,
        "RUN_ELEMENTS": 8,
        "DIRECT_MAX_COLUMNS": 1,
    }.items():
        monkeypatch.setattr(tuning, name, value)
    for seed in range(150):
        case = random_graph(seed, MIDDLE)
        case.require(engine_kernel(case.graph)(*case.arrays))


def test_threads_share_sums(allow_threads):
    """Additions are cut between elements."""
    allow_threads(4)
    for seed in range(100):
        case = random_graph(seed, MIDDLE)
        case.require(engine_kernel(case.graph)(*case.arrays))


def test_the_first_output_goes_where_it_is_told():
    """Also on a diagonal, whose surroundings are cleared, and in any layout."""
    graph = ContractionGraph(F8, ((0,),), (3,), (((0, 0), ((0,),)), ((0,), ((1, 0),))), (1, 2))
    x = np.array([1.0, 2.0, 3.0])
    for out in (np.full((3, 3), 9.0), np.full((3, 3), 9.0, order="F"), np.full((6, 6), 9.0)[::2, 1::2]):
        found, squares = engine_kernel(graph)(x, out=out)
        assert found is out
        np.testing.assert_array_equal(out, np.diag(x))
        np.testing.assert_array_equal(squares, x * x)


def test_a_report_counts_all_terms():
    """Operations and bytes of a sum are those of its products together."""
    steps = (((0, 2), ((0, 1), (0, 1), (2,))),)
    kernel = engine_kernel(ContractionGraph(F8, ((0, 1), (1, 2), (0, 2)), (2, 3, 4), steps, (3,)))
    (row,) = kernel.report()
    assert row.flops == kernel.flops == 2 * (24 + 24 + 8)
    assert row.bytes == 8 * (8 + 2 * (6 + 12) + 8)


def test_memory_of_values_is_reused():
    """A value is there until the last that takes it has been made."""
    n = 64 * 64 * 8
    steps = tuple([((0, 1), ((k, k),)) for k in range(10)])
    kernel = engine_kernel(ContractionGraph(F8, ((0, 1),), (64, 64), steps, (10,)))
    assert kernel.peak_bytes == 3 * n
    assert kernel.flops == 20 * 64 * 64


@pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made by Linux calls")
def test_nothing_is_read_or_written_outside():
    """Operands and the first output lie against pages that are out of bounds, at either end."""
    require_inside("""
from random_contractions import random_graph
from tenferro_tensor import ComputeDevice, get_backend
for seed in range(200):
    case = random_graph(seed)
    if any(0 in x.shape for x in (*case.arrays, *case.results)):
        continue
    kernel = get_backend("cpu").contraction(case.graph, ComputeDevice("cpu:0"))
    first = case.results[0].astype(case.graph.dtype)
    for at_end in (False, True):
        case.require(kernel(*[guarded(x, at_end) for x in case.arrays], out=guarded(first, at_end)))
""")
