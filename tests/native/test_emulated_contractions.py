"""Contractions planned for AArch64 and run there, in an emulator, against NumPy.

A developer's test: it needs `aarch64-linux-gnu-gcc` and `qemu-aarch64` (Debian's gcc-aarch64-linux-gnu and qemu-user).
"""

import random
from array import array
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from native_rooms import compiled
from random_contractions import MIDDLE, case_of, random_case
from tenferro_tensor.device_model import ContractionIR

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

CHARS = "fdFD"
BATCHED = (
    (((0, 1, 3), (1, 2, 3)), (0, 2, 3)), (((3, 0, 1), (2, 3, 1)), (0, 2, 3)), (((0, 1, 3), (3, 1, 2)), (3, 2, 0)),
)  # fmt: skip
"""Matrix products, the batch last in sizes."""


GLUE = """
#include "contraction/step.h"
#define WORK(c) \\
    void work_##c(const struct step *steps, int64_t count, char *const *bases, char *scratch, int64_t threads) \\
    { contraction_run(contraction_engine(#c[0], NULL), steps, count, bases, scratch, threads); }
WORK(f) WORK(d) WORK(F) WORK(D)
"""


@cache
def program():
    """The engine for four dtypes."""
    import emulated
    import tenferro_cpu.native.contraction

    if emulated.LINKER is None or emulated.EMULATOR is None:
        pytest.skip("there is no cross compiler or emulator for AArch64")
    folder = Path(tenferro_cpu.native.contraction.__file__).parent
    return emulated.Program([], [*folder.glob("*.simd.c"), folder / "step.c"], GLUE)


def put_tables(memory, step):
    """What the record of a step points to: tables, and records of the steps inside with what these point to."""
    for part, _ in step.inside:
        put_tables(memory, part)
    _, tables, *records = step._row
    memory.put(np.frombuffer(tables, np.int64))
    for words in records:
        there = array("q", map(memory.there, words))
        memory.put(np.frombuffer(words, np.int64), there.tobytes())


def placed(memory, case, most):
    """The call that does a case, and what checks its result afterwards."""
    from native_rooms import Microkernels
    from tenferro_cpu.native.contraction._chains import folded
    from tenferro_cpu.native.contraction._outputs import Outputs
    from tenferro_cpu.native.contraction._plan import make

    char, graph = case.ir.dtype.char, folded(case.ir.graph)
    plan = make(Microkernels(char, "neon", 1 << 20), graph, [x.strides for x in case.arrays], None, most)
    records, *steps = plan.keeps
    for step in steps:
        put_tables(memory, step)
    there = memory.words(map(memory.there, records))
    bases = [memory.put(x) for x in case.arrays]
    arena = memory.room(plan.arena)
    outputs = [memory.room(int(np.prod(graph.shape(v))) * case.ir.dtype.itemsize) for v in graph.outputs]
    bases += [arena, *outputs, memory.put(np.ones((), case.ir.dtype))]
    words = (there, len(steps), memory.words(bases), arena + plan.scratch, most)
    lies = Outputs(graph, plan.orders)

    def check():
        found = memory.read(outputs[0], lies.shape, case.ir.dtype)
        case.require(found if lies.axes is None else found.transpose(lies.axes))

    return (f"work_{char}", words), check


@pytest.mark.parametrize("threads", [1, 3])
def test_random_contractions(threads, allow_threads):
    """Equations, strides, dtypes, diagonals, scalars and zero extents; whole tiles, packed and direct."""
    import emulated

    engine, memory = program(), emulated.Memory()
    cases = [random_case(seed, MIDDLE if seed % 2 else (1, 2, 3, 4, 7, 8)) for seed in range(300)]
    calls = [placed(memory, case, threads) for case in cases]
    engine.run(memory, [call for call, _ in calls], threads)
    for _, check in calls:
        check()


@pytest.mark.usefixtures("fresh_steps")
def test_blocks_of_the_batch(monkeypatch):
    """Every way of copying, blocks that are not whole, vectors of one element."""
    import emulated
    from tenferro_cpu.native.contraction import _plan, tuning
    from tenferro_cpu.native.contraction._blocks import ways

    taken = []

    def blocked(kind, axes, most, cost):
        found = ways(kind, axes, most)
        for step in found:
            step.cost = -1.0
        taken.extend(found[:1])
        return found[number % len(found)] if found else None

    monkeypatch.setattr(_plan, "blocked", blocked)
    monkeypatch.setattr(_plan, "settled", lambda *arguments: False)
    monkeypatch.setattr(tuning, "COMPARE_MIN_WORK", 0)
    engine, memory, cases, calls = program(), emulated.Memory(), [], []
    for seed in range(120):
        rng, number = random.Random(seed), seed // 12
        extents = (*[rng.choice((1, 2, 5, 9)) for _ in range(3)], rng.choice((8, 9, 16, 21, 40)))
        operands, output = BATCHED[seed % 3]
        ir = ContractionIR(np.dtype(CHARS[seed // 3 % 4]), operands, extents, output, ((0, 1),))
        cases.append(case_of(rng, ir))
        calls.append(placed(memory, cases[-1], 1))
    engine.run(memory, [call for call, _ in calls])
    assert len(taken) > 50
    for _, check in calls:
        check()
