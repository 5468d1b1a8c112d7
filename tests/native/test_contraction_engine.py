"""The contraction engine: every path and layout against the plain sum, threads, memory, and what it refuses."""

import resource
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_cpu
from guard_pages import require_inside
from native_rooms import REGISTERS, Microkernels, compiled
from random_contractions import MIDDLE, Case, random_case
from tenferro_cpu.native.contraction import _kernel, _plan, tuning
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionIR
from tenferro_tensor_core import ArgumentError, ShapeError

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

F8 = np.dtype("float64")
SEEDS = st.integers(0, 1 << 40)


def engine_kernel(ir: ContractionIR):
    """The engine's kernel; never the reference."""
    kernel = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
    assert kernel is not None
    return kernel


def require(case: Case) -> None:
    """The engine computes the case, into fresh memory and into a given array."""
    kernel = engine_kernel(case.ir)
    for out in (None, case.out):
        found = kernel(*case.arrays, out=out)
        if case.ir.kept:
            found, *kept = found
            assert [x.shape for x in kept] == [case.ir.shape(v) for v in case.ir.kept]
        assert out is None or found is out
        case.require(found)
    direct = kernel.direct()
    for _ in range(2):  # the second call may be machine code from the beginning
        found = direct(*case.arrays)
        case.require(found[0] if case.ir.kept else found)


@given(SEEDS)
def test_random_contractions(seed):
    """Equations, strides, dtypes, diagonals, hyper-edges, scalars and zero extents."""
    require(random_case(seed))


@given(SEEDS)
def test_larger_random_contractions(seed):
    """Whole tiles, packed and direct."""
    require(random_case(seed, MIDDLE))


@given(SEEDS)
def test_results_in_the_order_that_is_cheapest(seed):
    """Where outputs are free to lie as they like, however small they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "FREE_OUTPUT_MIN_ELEMENTS", 0)
        patch.setattr(tuning, "FREE_OUTPUT_FACTOR", 2.0)  # nearly anything else than the order of the labels
        patch.setattr(_plan, "settled", lambda *_: False)
        require(random_case(seed, MIDDLE))


def test_only_large_results_lie_as_they_are_computed():
    """Sides that interleave in the result are blocks in memory; small results and a given `out` lie in order."""
    for n, free in ((4, False), (60, True)):
        ir = ContractionIR(F8, ((0, 2, 4), (4, 1, 3)), (n, n, 5, 5, 6), (0, 1, 2, 3), ((0, 1),))
        x, y = np.random.default_rng(0).normal(size=(n, 5, 6)), np.random.default_rng(1).normal(size=(6, n, 5))
        kernel, out = engine_kernel(ir), np.empty((n, n, 5, 5))
        found = kernel(x, y)
        assert found.flags.c_contiguous is not free and found.shape == out.shape
        assert kernel(x, y, out=out) is out
        assert np.allclose(found, np.einsum("ace,ebd->abcd", x, y)) and np.array_equal(found, out)


@pytest.mark.parametrize("extents", [(2, 3, 8, 16), MIDDLE])
@pytest.mark.usefixtures("fresh_steps")
def test_small_blocks_and_tables(monkeypatch, extents):
    """What large operands need: several blocks of every kind, groups that are cut, sums that go on."""
    sizes = {"ROW_BLOCK_BYTES": 1, "INNER_BLOCK": 16, "COLUMN_BLOCK": 8, "TABLE_MAX_ROWS": 30, "TABLE_MAX_COLUMNS": 20,
             "TABLE_MAX_INNER": 20, "RUN_ELEMENTS": 8, "DIRECT_MAX_COLUMNS": 1, "PREFETCH_MIN_BYTES": 0}  # fmt: skip
    for name, value in sizes.items():
        monkeypatch.setattr(tuning, name, value)
    for seed in range(100):
        require(random_case(seed, extents))


@pytest.mark.parametrize("level", REGISTERS)
def test_every_vector_level(monkeypatch, level):
    """Code for lower vector levels computes the same; plans know the sizes of its microkernels."""
    if compiled.contraction_sizes("d", level) is None:
        pytest.skip("this processor has no such level")
    for char in "fdFD":
        code, sizes = Microkernels(char, level, 1 << 20), compiled.contraction_sizes(char, level)
        assert (code.item, code.width, code.vectors, code.columns, code.masks, code.strips) == (
            sizes["item"], sizes["width"], sizes["vectors"], sizes["columns"], bool(sizes["masks"]),
            {"dot": sizes["dot"], "lanes": sizes["lanes"]},
        )  # fmt: skip
    monkeypatch.setattr(_kernel, "microkernels", lambda char: Microkernels(char, level, 1 << 20))
    for seed in range(60):
        require(random_case(seed, MIDDLE if seed % 2 else (1, 2, 3, 4, 7, 8)))


def test_threads_change_no_bit(allow_threads):
    """Work is cut between elements of the result, never within a sum."""
    for seed in range(50):
        case = random_case(seed, MIDDLE)
        kernel = engine_kernel(case.ir)
        results = []
        for number in (1, 2, 3, 4):
            allow_threads(number)
            found = kernel(*case.arrays)
            results.append(found[0] if case.ir.kept else found)
        case.require(results[-1])
        for found in results[1:]:
            np.testing.assert_array_equal(found, results[0])


def test_one_kernel_in_many_threads():
    """A plan is shared, memory is not."""
    cases = [random_case(seed, MIDDLE) for seed in range(6)]
    kernels = [engine_kernel(case.ir) for case in cases]
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(30):
                for case, kernel in zip(cases, kernels, strict=True):
                    found = kernel(*case.arrays)
                    case.require(found[0] if case.ir.kept else found)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_kept_values_are_those_of_the_steps():
    """Their axes are in the order that the IR says, however they lie."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(30, 17)), rng.normal(size=(17, 40)), rng.normal(size=(40, 9))
    ir = ContractionIR(F8, ((0, 1), (1, 2), (2, 3)), (30, 17, 40, 9), (3, 0), ((0, 1), (3, 2)), (3,))
    result, kept = engine_kernel(ir)(a, b, c)
    np.testing.assert_allclose(result, (a @ b @ c).T, rtol=1e-12)
    np.testing.assert_allclose(kept, a @ b, rtol=1e-12)
    del result
    np.testing.assert_allclose(kept, a @ b, rtol=1e-12)


def test_large_products_use_every_block():
    """Sizes beyond one block of rows, columns and summed indices, odd ones among them."""
    rng = np.random.default_rng(0)
    for m, k, n in ((700, 530, 2100), (257, 1030, 31), (20_001, 3, 5), (3, 70_001, 2), (1, 200_003, 1)):
        a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
        ir = ContractionIR(F8, ((0, 1), (1, 2)), (m, k, n), (0, 2), ((0, 1),))
        for x, y in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b))):
            np.testing.assert_allclose(engine_kernel(ir)(x, y), a @ b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.usefixtures("fresh_steps")
def test_long_runs_are_written_past_the_caches(monkeypatch, char):
    """Runs that begin and end anywhere in a line of memory, whether or not elements lie on their own size."""
    monkeypatch.setattr(Microkernels, "near_bytes", 0)
    rng = np.random.default_rng(0)
    for shape in ((3, 517), (5, 7, 300), (9000,)):
        labels = tuple(range(len(shape)))
        x, y = rng.normal(size=(2, *shape)).astype(char)
        for z, own in ((y, labels), (y.reshape(shape[0], -1)[:, 0].copy(), (0,)), (y.ravel()[0], ())):
            ir = ContractionIR(np.dtype(char), (labels, own), shape, labels, ((0, 1),))
            want = np.einsum(x, [*labels], z, [*own], [*labels])
            for offset in (0, 1, 3, np.dtype(char).itemsize * 3):
                room = np.full(want.nbytes + 64, 7, np.uint8)
                out = room[offset : offset + want.nbytes].view(char).reshape(shape)
                engine_kernel(ir)(x, z, out=out)
                np.testing.assert_allclose(out, want, rtol=1e-6)
                assert (room[:offset] == 7).all() and (room[offset + want.nbytes :] == 7).all()
        before = np.full((2, *shape), np.nan, char)  # every element of a result with gaps is written, and no other
        engine_kernel(ir)(x, z, out=before[0])
        assert np.isnan(before[1]).all() and not np.isnan(before[0]).any()


@pytest.mark.parametrize("char", "fdFD")
def test_rows_lie_together_in_parts(char):
    """Full tiles whose vectors lie together are packed at once, whether or not the tile does; others are not."""
    rng = np.random.default_rng(0)
    for run in (24, 16, 12, 7):
        x = rng.normal(size=(600, 9, 31)).astype(char)[:, :, :run]
        y = rng.normal(size=(37, 600)).astype(char)
        ir = ContractionIR(np.dtype(char), ((0, 1, 2), (3, 0)), (600, 9, run, 37), (3, 1, 2), ((0, 1),))
        kernel = engine_kernel(ir)
        assert kernel.report()[0].kernel == "gemm"
        scale = 1e-4 if char in "fF" else 1e-12
        np.testing.assert_allclose(kernel(x, y), np.einsum("kij,nk->nij", x, y), rtol=0, atol=scale * 600)


def test_memory_is_what_was_predicted():
    """Intermediate results share places; their largest sum is the prediction."""
    labels = tuple((k, k + 1) for k in range(20))
    steps = ((0, 1), *[(19 + k, k + 1) for k in range(1, 19)])
    kernel = engine_kernel(ContractionIR(F8, labels, (64,) * 21, (0, 20), steps))
    matrix = 64 * 64 * 8
    assert 3 * matrix <= kernel.peak_bytes <= 3 * matrix + (1 << 18)
    assert kernel.flops == 19 * 2 * 64**3
    assert [r.sizes for r in kernel.report()] == [(1, 64, 64, 64)] * 19


def test_what_does_not_fit_is_refused():
    """Shapes, dtypes and things that are no arrays."""
    ir = ContractionIR(F8, ((0, 1), (1, 2)), (2, 3, 4), (0, 2), ((0, 1),))
    kernel = engine_kernel(ir)
    a, b = np.ones((2, 3)), np.ones((3, 4))
    with pytest.raises(ShapeError, match=r"operand 1 of a contraction of float64 has shape \(4, 3\)"):
        kernel(a, b.T)
    with pytest.raises(ShapeError, match="dtype float32"):
        kernel(a, b.astype("float32"))
    for wrong, out in (((a,), None), ((a,), np.ones((2, 4))), ((a, b, b), np.ones((2, 4)))):
        with pytest.raises(ShapeError, match=f"2 operands got {len(wrong)}"):
            kernel(*wrong, out=out)
    with pytest.raises(ShapeError, match="2 operands got 1"):
        engine_kernel(ContractionIR(F8, ((0,), ()), (2,), (0,), ((0, 1),)))(np.ones(2))
    with pytest.raises(ShapeError, match=r"out of a contraction of float64 has shape \(4, 2\)"):
        kernel(a, b, out=np.ones((4, 2)))
    with pytest.raises(ArgumentError, match="out is an array"):
        kernel(a, b, out=1.0)
    with pytest.raises(ArgumentError, match="got one that cannot"):
        kernel(a, b, out=np.broadcast_to(1.0, (2, 4)))


@pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made by Linux calls")
def test_nothing_is_read_or_written_outside():
    """Operands and results lie against pages that are out of bounds; the last runs are written past the caches."""
    require_inside("""
from random_contractions import random_case
from tenferro_cpu.native.contraction import _step, tuning
from tenferro_cpu.native.contraction._microkernels import Microkernels
from tenferro_tensor import ComputeDevice, get_backend
streamed = 0
for seed in range(350):
    if seed == 250:
        Microkernels.near_bytes, tuning.STREAM_MIN_RUN_BYTES = 0, 1
        _step.STEPS.clear()
    case = random_case(seed)
    if any(0 in x.shape for x in (*case.arrays, case.out)):
        continue
    kernel = get_backend("cpu").contraction(case.ir, ComputeDevice("cpu:0"))
    for at_end in (False, True):
        found = kernel(*[guarded(x, at_end) for x in case.arrays], out=guarded(case.out, at_end))
        case.require(found[0] if case.ir.kept else found)
    streamed += any(step.words.get("stream") for plan, *_ in kernel._plans.values() for step in plan.keeps[1:])
assert streamed > 10
""")


@pytest.mark.slow
def test_thousands_of_contractions_leak_nothing():
    """Plans, tables and arenas go with their kernels."""
    cases = [random_case(seed) for seed in range(500)]

    def once() -> None:
        for case in cases:
            require(case)

    once()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        once()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10  # KB on Linux


def test_scopes_of_threads_are_kept():
    """One thread in the scope of one."""
    case = random_case(3, MIDDLE)
    with tenferro_cpu.threads(1):
        require(case)
