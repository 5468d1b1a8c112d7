"""Programs compiled by XLA beside the same functions in `jax.jit`: a call, and the first call.

    python benchmarks/xla.py [--rounds 9] [--only scan,fft] [--busy] [--first] [--calls]

Both compute with arrays on the same device of XLA, in numbers of 64 bits, and wait for the results. They take turns;
the columns are medians in microseconds (`--busy`: the least processor time of all threads, for machines with other
work), and their ratios. The first call is tracing, lowering and compiling, with all caches of both empty, in
milliseconds. Results are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import jax
import numpy as np
from xla_programs import Row, contestants, own_draw, rows, wait

import tenferro_runtime as tr
from tenferro_runtime.extension import caches

SEARCH = 0.3
"""Seconds of one round of calls of one contestant, at most."""


def forget() -> None:
    """Empty the caches of both."""
    for cache in caches():
        cache.clear()
    jax.clear_caches()


def first_calls(row: Row, rounds: int, clock: Callable[[], float]) -> list[list[float]]:
    """Seconds that first calls take, of both."""
    seconds: list[list[float]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            forget()
            f, arguments = contestants(row)[which]
            start = clock()
            wait(f(*arguments))
            seconds[which].append(clock() - start)
    return seconds


def calls(row: Row, rounds: int, clock: Callable[[], float]) -> list[list[float]]:
    """Seconds that calls take, of both; results are compared."""
    both = contestants(row)
    own, other = (tr.tree_leaves(f(*arguments)) for f, arguments in both)
    for a, b in zip([x.numpy() for x in own], map(np.asarray, other), strict=True):
        assert a.shape == b.shape
        if row.own() is not own_draw:  # vectors of svd have no sign
            np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-8, atol=1e-8)
    for f, arguments in both:  # the second call takes the fast path
        wait(f(*arguments))
    start = clock()
    wait(both[1][0](*both[1][1]))
    repeats = max(1, min(2000, int(SEARCH / rounds / max(clock() - start, 1e-7))))
    seconds: list[list[float]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            f, arguments = both[which]
            start = clock()
            for _ in range(repeats):
                result = f(*arguments)
            wait(result)
            seconds[which].append((clock() - start) / repeats)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose name has one of these texts, with commas between")
    parser.add_argument("--busy", action="store_true", help="the least processor time of all threads")
    parser.add_argument("--first", action="store_true", help="first calls only")
    parser.add_argument("--calls", action="store_true", help="calls only")
    given = parser.parse_args()
    clock = time.process_time if given.busy else time.perf_counter
    of_all = min if given.busy else statistics.median
    print(f"{'':26}{'call [us]':>12}{'jax.jit':>12}{'ratio':>8}{'first [ms]':>14}{'jax.jit':>10}{'ratio':>8}")
    with jax.enable_x64(True):
        for name, row in rows().items():
            if not any(part in name for part in given.only.split(",")):
                continue
            text = f"{name:26}"
            if not given.first:
                own, other = (1e6 * of_all(s) for s in calls(row, given.rounds, clock))
                text += f"{own:12.1f}{other:12.1f}{own / other:8.2f}"
            if not given.calls:
                own, other = (1e3 * of_all(s) for s in first_calls(row, max(3, given.rounds // 3), clock))
                text += f"{own:14.1f}{other:10.1f}{own / other:8.2f}"
            print(text, flush=True)


if __name__ == "__main__":
    main()
