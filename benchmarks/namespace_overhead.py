"""What a call on tiny arrays costs beside NumPy: operators, functions, methods and views.

    python benchmarks/namespace_overhead.py [rounds]

Each call of tenferro is timed in turn with the NumPy call that does the same, in short batches, and the table shows
medians over the batches in nanoseconds. Time is that of the thread, so that other processes disturb it little.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tenferro_runtime as tr

Call = Callable[[], Any]
BATCH = 500


def cases() -> dict[str, tuple[Call, Call]]:
    """By name: the call of tenferro and that of NumPy."""
    a, b, m = np.arange(8.0), np.arange(8.0) + 1, np.arange(16.0).reshape(4, 4)
    x, y, w = tr.asarray(a), tr.asarray(b), tr.asarray(m)
    v, c = tr.asarray(m[0].copy()), m[0].copy()
    return {
        "x + y": (lambda: x + y, lambda: a + b),
        "x * 2.0": (lambda: x * 2.0, lambda: a * 2.0),
        "2.0 * x": (lambda: 2.0 * x, lambda: 2.0 * a),
        "-x": (lambda: -x, lambda: -a),
        "add(x, y)": (lambda: tr.add(x, y), lambda: np.add(a, b)),
        "tanh(x)": (lambda: tr.tanh(x), lambda: np.tanh(a)),
        "v @ w": (lambda: v @ w, lambda: c @ m),
        "w @ w": (lambda: w @ w, lambda: m @ m),
        "x.sum()": (lambda: x.sum(), lambda: a.sum()),
        "w.sum(axis=0)": (lambda: w.sum(axis=0), lambda: m.sum(axis=0)),
        "x[1:]": (lambda: x[1:], lambda: a[1:]),
        "x[1]": (lambda: x[1], lambda: a[1]),
        "w[:, 1]": (lambda: w[:, 1], lambda: m[:, 1]),
        "x.reshape(2, 4)": (lambda: x.reshape(2, 4), lambda: a.reshape(2, 4)),
        "x.reshape(2, -1)": (lambda: x.reshape(2, -1), lambda: a.reshape(2, -1)),
        "w.T": (lambda: w.T, lambda: m.T),
        "where(x > 2, x, y)": (lambda: tr.where(x > 2, x, y), lambda: np.where(a > 2, a, b)),
    }


def batch(call: Call) -> float:
    """Nanoseconds of one call, the mean over a batch."""
    start = time.thread_time_ns()
    for _ in range(BATCH):
        call()
    return (time.thread_time_ns() - start) / BATCH


def measure(ours: Call, theirs: Call, rounds: int) -> tuple[float, float]:
    """Medians of the two, timed in turn."""
    times = [(batch(ours), batch(theirs)) for _ in range(rounds)]
    return statistics.median(t for t, _ in times), statistics.median(t for _, t in times)


def main(rounds: int) -> None:
    """Print the table."""
    print(f"{'call':20} {'tenferro':>9} {'numpy':>9} {'ratio':>7} {'extra ns':>9}")
    for name, (ours, theirs) in cases().items():
        t, n = measure(ours, theirs, rounds)
        print(f"{name:20} {t:9.0f} {n:9.0f} {t / n:7.2f} {t - n:9.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 31)
