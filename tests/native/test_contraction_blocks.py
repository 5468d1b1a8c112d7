"""Products in blocks of the batch: every way of copying, blocks that are not whole, threads, and nothing outside."""

import random
import sys
from typing import Any

import numpy as np
import pytest

from guard_pages import require_inside
from native_rooms import REGISTERS, Microkernels, compiled
from tenferro_cpu.native.contraction import _kernel, _plan, tuning
from tenferro_cpu.native.contraction._blocks import ways
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionIR

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

BATCHED = (
    "mkb,knb->mnb", "bmk,knb->bmn", "mbk,bnk->mnb", "kmb,bkn->nmb", "amkb,nabk->bnma", "amb,nkb->mnb", "mb,bn->bmn",
    "bmkl,nlbk->bnm", "bm,bn->nb", "bkma,kban->amnb",
)  # fmt: skip


def prefer(monkeypatch, number: int) -> None:
    """Take this one of the ways in blocks, where there is one."""

    def blocked(kind, axes, most, cost):
        found = ways(kind, axes, most)
        for step in found:
            step.cost = -1.0
        return found[number % len(found)] if found else None

    monkeypatch.setattr(_plan, "blocked", blocked)
    monkeypatch.setattr(_plan, "settled", lambda *arguments: False)
    monkeypatch.setattr(tuning, "COMPARE_MIN_WORK", 0)


def case(subscripts: str, dtype: str, rng: random.Random):
    """The kernel, arrays with any strides, and the result with its scale."""
    terms, output = subscripts.split("->")
    labels = sorted({*terms} - {","})
    sizes = {x: rng.choice((8, 9, 15, 16, 17, 21, 40)) if x == "b" else rng.choice((1, 2, 3, 5, 8, 9)) for x in labels}
    operands = tuple(tuple(labels.index(x) for x in term) for term in terms.split(","))
    extents = tuple(sizes[x] for x in labels)
    ir = ContractionIR(np.dtype(dtype), operands, extents, tuple(map(labels.index, output)), ((0, 1),))
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    arrays = []
    for term in terms.split(","):
        wide = [sizes[x] * rng.choice((1, 1, 1, 2)) for x in term]
        x = numbers.normal(size=wide) + (1j * numbers.normal(size=wide) if dtype in "FD" else 0)
        parts = [slice(None, None, w // sizes[k] * rng.choice((1, 1, -1))) for w, k in zip(wide, term, strict=True)]
        arrays.append(x.astype(dtype)[tuple(parts)])
    wide = [x.astype("D" if dtype in "FD" else "d") for x in arrays]
    result, scale = np.einsum(subscripts, *wide), np.einsum(subscripts, *[np.abs(x) for x in wide])
    kernel = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
    assert kernel is not None
    return kernel, arrays, result, scale


def require(subscripts: str, dtype: str, seed: int) -> int:
    """The result is right, in fresh memory and in that of another order; how often blocks made it."""
    kernel, arrays, result, scale = case(subscripts, dtype, random.Random(seed))
    out = np.empty(result.shape[::-1], dtype).T
    for found in (kernel(*arrays), kernel(*arrays, out=out)):
        wrong = np.abs(found - result) > (1e-4 if dtype in "fF" else 1e-12) * scale + 1e-30
        assert not wrong.any(), (subscripts, dtype, seed)
    return sum(step.kernel == "blocks" for plan, *_ in kernel._plans.values() for _, step in plan.told)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("dtype", "fdFD")
def test_every_way_in_blocks(monkeypatch, number, dtype):
    """Copies with the batch innermost and outermost, of each operand and the result; parts of blocks."""
    prefer(monkeypatch, number)
    assert sum(require(subscripts, dtype, seed) for subscripts in BATCHED for seed in range(6)) > 25


@pytest.mark.parametrize("level", REGISTERS)
def test_every_vector_level(monkeypatch, level):
    """Shorter vectors, shorter blocks."""
    if compiled.contraction_sizes("d", level) is None:
        pytest.skip("this processor has no such level")
    monkeypatch.setattr(_kernel, "microkernels", lambda char: Microkernels(char, level, 1 << 20))
    for number in range(2):
        prefer(monkeypatch, number)
        assert sum(require(subscripts, "F", 7) for subscripts in BATCHED) > 3


def test_no_bit_depends_on_threads(monkeypatch, allow_threads):
    """The last block of each piece is its own, whole or not."""
    for number in range(4):
        prefer(monkeypatch, number)
        for subscripts in BATCHED:
            kernel, arrays, *_ = case(subscripts, "d", random.Random(number))
            results = []
            for threads in (1, 2, 3, 4):
                allow_threads(threads)
                results.append(kernel(*arrays))
            assert all((x == results[0]).all() for x in results)


def test_blocks_are_chosen():
    """Where lines of memory hold elements of many batches, and there is work enough."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(14, 31, 232)), rng.normal(size=(13, 232, 14))
    ir = ContractionIR(np.dtype("d"), ((2, 0, 1), (3, 1, 2)), (31, 232, 14, 13), (1, 3, 0), ((0, 1),))
    kernel: Any = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
    out = np.empty((232, 13, 31))
    np.testing.assert_allclose(kernel(x, y, out=out), np.einsum("kmb,nbk->bnm", x, y), rtol=1e-12, atol=1e-12)
    (step,) = [step for plan, *_ in kernel._plans.values() for _, step in plan.told]
    assert step.kernel == "blocks"
    assert step.nbytes > sum(part.nbytes for part, _ in step.inside) > 0  # what plans keep is bounded


@pytest.mark.skipif(sys.platform != "linux", reason="guard pages are made by Linux calls")
def test_nothing_is_read_or_written_outside():
    """Blocks of operands that end where memory ends."""
    require_inside("""
import random
import numpy as np
from tenferro_cpu.native.contraction import _plan, tuning
from tenferro_cpu.native.contraction._blocks import ways
from tenferro_cpu.native.contraction._microkernels import REGISTERS, Microkernels
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionIR
number = 0
def blocked(kind, axes, most, cost):
    found = ways(kind, axes, most)
    for step in found:
        step.cost = -1.0
    return found[number % len(found)] if found else None
_plan.blocked, _plan.settled, tuning.COMPARE_MIN_WORK = blocked, lambda *_: False, 0
for inputs, output in ((((0, 1, 3), (1, 2, 3)), (0, 2, 3)), (((3, 0, 1), (2, 3, 1)), (0, 2, 3)),
                       (((0, 1, 3), (3, 1, 2)), (3, 2, 0))):
    for number in range(3):
        for seed in range(4):
            rng = random.Random(seed)
            extents = (*[rng.choice((1, 2, 5, 9, 12)) for _ in range(3)], rng.choice((8, 9, 16, 21, 29)))
            for char in "dF":
                ir = ContractionIR(np.dtype(char), inputs, extents, output, ((0, 1),))
                kernel = get_backend("cpu").contraction(ir, ComputeDevice("cpu:0"))
                arrays = [np.ones([extents[x] for x in t], char) for t in inputs]
                wanted = np.einsum(arrays[0], list(inputs[0]), arrays[1], list(inputs[1]), list(output))
                for at_end in (False, True):
                    out = between_guards(wanted.shape, wanted.dtype, at_end)
                    assert np.allclose(kernel(*[guarded(x, at_end) for x in arrays], out=out), wanted)
""")
