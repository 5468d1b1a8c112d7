"""Kernels whose vectors run along the sum or the batch, copies that make way for them, results past the caches."""

import random
import sys
from typing import Any

import numpy as np
import pytest

from guard_pages import require_inside
from native_rooms import REGISTERS, Microkernels, compiled
from tenferro_cpu.native.contraction import _kernel, _plan, _step, tuning
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionIR

pytestmark = [
    pytest.mark.skipif(compiled is None, reason="there is no C extension"),
    pytest.mark.usefixtures("fresh_steps"),
]

ALONG_SUM = ("amk,ank->amn", "mk,nk->nm", "mik,ink->mn", "imk,kni->mn", "km,nk->nm", "mkj,njk->mn")
PAIRS = ("bk,bk->b", "bik,bki->b", "kb,bk->b", "abk,akb->ba")
ALONG_BATCH = ("mka,kna->mna", "akm,kna->nma", "mkab,knab->anmb", "ma,na->mna", "amk,ank->nma")


def prefer(monkeypatch, name: str) -> None:
    """Take this kernel wherever there is a way to, copies of operands included."""
    monkeypatch.setattr(_step, "_cost", lambda step: step.cost - 1e12 * (step.kernel == name))
    for module in (_step, _plan):
        monkeypatch.setattr(module, "settled", lambda *arguments: False)
    real = _step.plan_step

    def planned(*arguments):
        step = real(*arguments)
        if step is not None and step.kernel == name:
            step.cost = -1e12
        return step

    monkeypatch.setattr(_plan, "plan_step", planned)
    monkeypatch.setattr(tuning, "COMPARE_MIN_WORK", 1)


def case(subscripts: str, dtype: str, rng: random.Random):
    """The kernel, arrays, and the result with its scale."""
    terms, output = subscripts.split("->")
    number = {x: n for n, x in enumerate(sorted({*terms} - {","}))}
    sizes = {x: rng.choice((1, 2, 3, 4, 5, 9)) for x in number}
    sizes |= {x: rng.choice((4, 8, 9, 17, 31, 40)) for x in number if x in "ak"}
    if "k" in number and rng.random() < 0.3:
        sizes["k"] = rng.choice((100, 513, 1030))
    shapes = [[sizes[x] for x in term] for term in terms.split(",")]
    operands = tuple(tuple(number[x] for x in term) for term in terms.split(","))
    ir = ContractionIR(
        np.dtype(dtype), operands, tuple(sizes[x] for x in number), tuple(number[x] for x in output), ((0, 1),)
    )
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    arrays = [(numbers.normal(size=s) + (1j * numbers.normal(size=s) if dtype in "FD" else 0)).astype(dtype)
              for s in shapes]  # fmt: skip
    wide = [x.astype("D" if dtype in "FD" else "d") for x in arrays]
    result, scale = np.einsum(subscripts, *wide), np.einsum(subscripts, *[np.abs(x) for x in wide])
    kernel = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
    assert kernel is not None
    return kernel, arrays, result, scale


def require(subscripts: str, dtype: str, seed: int) -> str:
    """The result is right, in fresh memory and in that of another order; the kernel that made it."""
    kernel, arrays, result, scale = case(subscripts, dtype, random.Random(seed))
    out = np.empty(result.shape[::-1], dtype).T
    for found in (kernel(*arrays), kernel(*arrays, out=out)):
        wrong = np.abs(found - result) > (1e-4 if dtype in "fF" else 1e-12) * scale + 1e-30
        assert not wrong.any(), (subscripts, dtype, seed, kernel.report())
    return kernel.report()[0].kernel


@pytest.mark.parametrize("name, every", [("dot", ALONG_SUM), ("lanes", ALONG_BATCH)])
@pytest.mark.parametrize("dtype", "fdFD")
def test_strips_of_all_sizes(monkeypatch, name, every, dtype):
    """Tiles of every size, whole vectors and parts of one, several chunks; operands are copied where they must be."""
    prefer(monkeypatch, name)
    used = [require(subscripts, dtype, seed) for subscripts in every for seed in range(25)]
    assert used.count(name) > 20


@pytest.mark.parametrize("dtype", "fdFD")
def test_pairs_of_rows(monkeypatch, allow_threads, dtype):
    """One row and one column each: any batch and length, runs shorter than a vector; no bit depends on threads."""
    prefer(monkeypatch, "dot")
    used = [require(subscripts, dtype, seed) for subscripts in PAIRS for seed in range(25)]
    assert used.count("dot") > 20
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(4099, 77)).astype(dtype) for _ in "xy")
    ir = ContractionIR(np.dtype(dtype), ((0, 1), (0, 1)), x.shape, (0,), ((0, 1),))
    kernel = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
    assert kernel.report()[0].kernel == "dot"
    results = [kernel(x, y)]
    for threads in (1, 2, 3):
        allow_threads(threads)
        results.append(kernel(x, y))
    assert all((z == results[0]).all() for z in results)
    np.testing.assert_allclose(results[0], np.einsum("bk,bk->b", x, y), atol=1e-3 if dtype in "fF" else 1e-11)


@pytest.mark.parametrize("level", REGISTERS)
def test_every_vector_level(monkeypatch, level):
    """Fewer registers, shorter vectors."""
    if compiled.contraction_sizes("d", level) is None:
        pytest.skip("this processor has no such level")
    monkeypatch.setattr(_kernel, "microkernels", lambda char: Microkernels(char, level, 1 << 20))
    for name, every in (("dot", ALONG_SUM + PAIRS), ("lanes", ALONG_BATCH)):
        prefer(monkeypatch, name)
        _step.STEPS.clear()
        used = [require(subscripts, dtype, seed) for subscripts in every for dtype in "dD" for seed in range(5)]
        assert name in used


@pytest.mark.parametrize("subscripts", ["mkr,kn->mnr", "nk,mkr->mnr", "mir,ni->mnr"])
def test_runs_of_rows_are_products_of_their_own(subscripts):
    """Short runs that fill no whole vectors are read where they lie, by few columns."""
    sizes = {"m": 60, "k": 39, "i": 39, "r": 13, "n": 3}
    terms, output = subscripts.split("->")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=[sizes[x] for x in term]) for term in terms.split(",")]
    number = {x: n for n, x in enumerate(sizes)}
    operands = tuple(tuple(number[x] for x in term) for term in terms.split(","))
    ir = ContractionIR(
        np.dtype("d"), operands, tuple(sizes.values()), tuple(number[x] for x in output), ((0, 1),)
    )  # fmt: skip
    kernel = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
    wanted = np.einsum(subscripts, *arrays)
    np.testing.assert_allclose(kernel(*arrays), wanted, rtol=1e-12, atol=1e-12)
    out = np.empty((*wanted.shape[:2], 2 * 13))[..., ::2]
    np.testing.assert_allclose(kernel(*arrays, out=out), wanted, rtol=1e-12, atol=1e-12)


def test_no_bit_depends_on_threads(monkeypatch, allow_threads):
    """Strips and copies are cut along rows, columns and the batch."""
    for name, subscripts in (("dot", "mk,nk->mn"), ("dot", "km,nk->nm"), ("lanes", "amk,kna->mna")):
        prefer(monkeypatch, name)
        for seed in range(5):
            kernel, arrays, *_ = case(subscripts, "d", random.Random(seed))
            results = []
            for threads in (1, 2, 3, 4):
                allow_threads(threads)
                results.append(kernel(*arrays))
            assert all((x == results[0]).all() for x in results)


@pytest.mark.parametrize("dtype", "fdFD")
def test_results_past_the_caches(monkeypatch, dtype):
    """Whole lines of memory are written at once; where the result does not begin with one, they are not."""
    monkeypatch.setattr(tuning, "STREAM_MIN_BYTES", 0)
    rng = np.random.default_rng(0)
    n = 64 // np.dtype(dtype).itemsize
    x, y = (rng.normal(size=s).astype(dtype) for s in ((2 * n, 3, 5, n), (5, 3)))
    ir = ContractionIR(np.dtype(dtype), ((3, 2, 1, 0), (1, 4)), (n, 5, 3, 2 * n, 3), (3, 2, 4, 0), ((0, 1),))
    kernel: Any = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
    assert any(step.words.get("stream") for step in kernel._contiguous.keeps[1:])
    expected = np.einsum("dcba,be->dcea", x, y)
    room = np.empty(expected.size + 64, dtype)
    for start in range(n + 1):
        out = room[start : start + expected.size].reshape(expected.shape)
        np.testing.assert_allclose(kernel(x, y, out=out), expected, rtol=1e-4 if dtype in "fF" else 1e-12, atol=1e-5)


@pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made by Linux calls")
def test_nothing_is_read_or_written_outside():
    """Strips, copies and packed blocks that are not whole stay within their operands."""
    require_inside("""
import random
import numpy as np
from tenferro_cpu.native.contraction import _plan, _step, tuning
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionIR
best = None
_step._cost = lambda step: step.cost - 1e12 * (step.kernel == best)
tuning.COMPARE_MIN_WORK = 1
tuning.PREFETCH_BATCH_MIN_BYTES = 0
_plan.settled = _step.settled = lambda *_: False
tuning.PREFETCH_MIN_BYTES = 0
for best in ("dot", "lanes", "gemm"):
    _step.STEPS.clear()
    for inputs, output in ((((0, 1), (2, 1)), (0, 2)), (((1, 0), (2, 1)), (2, 0)), (((3, 0, 1), (1, 2, 3)), (0, 2, 3)),
                           (((0, 3), (0, 3)), (0,))):
        for seed in range(40):
            rng = random.Random(seed)
            extents = tuple(rng.choice((1, 2, 5, 9, 12, 16, 21)) for _ in range(4))
            for char in "dF":
                ir = ContractionIR(np.dtype(char), inputs, extents, output, ((0, 1),))
                kernel = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
                arrays = [np.ones([extents[x] for x in t], char) for t in inputs]
                wanted = np.einsum(arrays[0], list(inputs[0]), arrays[1], list(inputs[1]), list(output))
                for at_end in (False, True):
                    out = between_guards(wanted.shape, wanted.dtype, at_end)
                    assert np.allclose(kernel(*[guarded(x, at_end) for x in arrays], out=out), wanted)
""")
