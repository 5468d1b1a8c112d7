"""What CPU pools bring: independent branches on two of them against the same branches one after the other.

    OPENBLAS_NUM_THREADS=1 python benchmarks/placement.py

One row for each length of a branch: the time of the compiled function on two pools over that in the calling thread,
interleaved, the median of the ratios of neighbouring calls. Once with the devices written down, and once placed by
``placement="auto"``, where small branches stay where they are. Needs two free cores. The last row says what a hand-over
costs where there is nothing to gain.
"""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tenferro_runtime as tr
from tenferro_cpu import CpuPool

ROUNDS = 41


def ratio(
    first: Callable[..., Any], second: Callable[..., Any], *args: Any, rounds: int = ROUNDS
) -> tuple[float, float]:
    """Median of the ratios of neighbouring calls, and the median seconds of the second."""
    ratios, seconds = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        first(*args)
        middle = time.perf_counter()
        second(*args)
        end = time.perf_counter()
        ratios.append((middle - start) / (end - middle))
        seconds.append(end - middle)
    return statistics.median(ratios), statistics.median(seconds)


def chain(x: Any, steps: int) -> Any:
    """Some products, one after the other."""
    y = x
    for _ in range(steps):
        y = y @ x
    return y


def programs(steps: int) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Two branches one after the other, on two devices, and placed by the cost model."""

    def plain(x: Any, y: Any) -> Any:
        return chain(x, steps) + chain(y, steps)

    def pools(x: Any, y: Any) -> Any:
        with tr.compute_device("cpu:1"):
            a = chain(x, steps)
        return a + chain(y, steps)

    return tr.compile(plain), tr.compile(pools), tr.compile(plain, placement="auto")


def main() -> None:
    rng = np.random.default_rng(0)
    with CpuPool(index=1):
        print(f"{'branch':24} {'sequential':>12} {'two pools':>10} {'auto':>6}  auto says")
        for n, steps in ((32, 4), (64, 8), (96, 8), (128, 8), (128, 24), (256, 8), (256, 24)):
            x, y = (tr.asarray(rng.standard_normal((n, n)) / n) for _ in range(2))
            plain, pools, auto = programs(steps)
            for f in (plain, pools, auto):
                for _ in range(3):
                    f(x, y)
            there, seconds = ratio(pools, plain, x, y)
            placed, _ = ratio(auto, plain, x, y)
            why = auto.plan(x, y).placement.why  # type: ignore[attr-defined]
            name = f"{steps} products of {n}"
            print(f"{name:24} {seconds * 1e6:9.0f} µs {there:9.2f}x {placed:5.2f}x  {why}")
        x = tr.asarray(np.ones(8))
        one = tr.compile(lambda x: x + 1.0 - x)
        two = tr.compile(lambda x: (x.with_compute_device("cpu:1") + 1.0).with_compute_device(None) - x)
        for f in (one, two):
            for _ in range(3):
                f(x)
        extra, seconds = ratio(two, one, x, rounds=400)
        print(f"a hand-over and back: {seconds * (extra - 1.0) * 1e6:.0f} µs")


if __name__ == "__main__":
    main()
