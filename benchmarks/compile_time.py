"""The time that compiling takes, by stages: it has to grow with the number of equations, not faster.

    python benchmarks/compile_time.py [--sizes 10,100,1000] [--kinds chain,mixed] [--profile STAGE]

A chain is element-wise, equations of random kind; a mixed program has small products of matrices and contractions in
between; `gradient` is the value and gradient of a mixed program. Nothing in them repeats, so that no loop is found.
The stages: recording, the passes, loop nests and the passes over them, LLVM text, LLVM. The last line is a loop of
Python over 800 steps with its gradient, which is recorded as two loops: the first result, and the native function.
Times are of one run, in milliseconds of the processor.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_cpu.native.codegen.machine._jit import Engine
from tenferro_cpu.native.codegen.whole import NAME, render
from tenferro_einsum import einsum
from tenferro_runtime.lowering import lower

STAGES = ("record", "passes", "lower", "render", "llvm")
ELEMENT_WISE: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: tr.sin(x), lambda x, y: tr.exp(-x * x), lambda x, y: x + 0.5 * y, lambda x, y: x * y,
    lambda x, y: tr.maximum(x, y), lambda x, y: tr.sqrt(1.0 + y * y),
)  # fmt: skip
LINEAR: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x @ y, lambda x, y: einsum("ij,kj->ik", x, y), lambda x, y: x - tr.sum(y, axis=0),
    lambda x, y: einsum("ij,j->ij", x, y[0]),
)  # fmt: skip


def program(kind: str, count: int) -> Callable[..., Any]:
    """A function whose trace has about so many equations."""

    def f(x: Any) -> Any:
        choice = random.Random(0)
        values = [x, 0.5 * x, tr.cos(x)]
        steps = ELEMENT_WISE if kind == "chain" else ELEMENT_WISE + LINEAR
        for _ in range(count * 5 // 9):
            values[choice.randrange(3)] = choice.choice(steps)(*choice.sample(values, 2))
        return tr.sum(values[0] + values[1] * values[2])

    return ad.value_and_grad(f) if kind == "gradient" else f


def stages(kind: str, count: int, profiled: str | None) -> tuple[int, dict[str, float]]:
    """The number of equations, and the time of each stage."""
    x = np.linspace(0.0, 1.0, 1000) if kind == "chain" else np.linspace(0.0, 1.0, 64).reshape(8, 8)
    found: dict[str, float] = {}

    def timed(stage: str, f: Callable[..., Any], *args: Any) -> Any:
        profile = cProfile.Profile() if stage == profiled else None
        start = time.process_time()
        out = profile.runcall(f, *args) if profile else f(*args)
        found[stage] = 1e3 * (time.process_time() - start)
        if profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return out

    native = Engine(cache=None)
    traced = timed("record", tr.trace, program(kind, count), x)
    passed = timed("passes", tr.Runtime(unroll=True).optimise, traced)
    function = timed("lower", lower, passed)
    text = timed("render", render, function, native.host)
    timed("llvm", native.function, text.text, NAME, None, text.level)
    return len(traced.equations), found


def loop_of_python(count: int) -> tuple[float, float]:
    """Seconds until the first result of a loop with its gradient, and until its native function is there."""
    a, x = np.random.default_rng(0).normal(size=(8, 8)) / 3, np.ones(8)

    def f(a: Any, x: Any) -> Any:
        for _ in range(count):
            x = tr.tanh(einsum("ij,j->i", a, x))
        return tr.sum(x)

    compiled = tr.compile(ad.value_and_grad(f))
    start = time.perf_counter()
    compiled(a, x)
    first = time.perf_counter() - start
    while "as one native function" not in str(compiled.explain(a, x)).splitlines()[-1]:
        compiled(a, x)
        time.sleep(0.005)
    return first, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,100,1000,10000")
    parser.add_argument("--kinds", default="chain,mixed,gradient")
    parser.add_argument("--profile", choices=STAGES)
    given = parser.parse_args()
    stages("gradient", 10, None)  # imports
    print(f"{'program':10} {'equations':>9} " + " ".join(f"{name:>8}" for name in (*STAGES, "all")))
    for kind in given.kinds.split(","):
        for size in map(int, given.sizes.split(",")):
            count, times = stages(kind, size, given.profile)
            row = [*times.values(), sum(times.values())]
            print(f"{kind:10} {count:9} " + " ".join(f"{ms:8.1f}" for ms in row), flush=True)
    first, ready = loop_of_python(800)
    print(f"800 steps with gradient: first result after {first:.2f} s, native function after {ready:.2f} s")


if __name__ == "__main__":
    main()
