"""Wall times of rows: all libraries take turns in one process on one core, so that a slow phase hits all of them."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

from suite.libraries import settings
from suite.rows import Call, Row

BATCH_SECONDS = 0.002
ROW_SECONDS = 0.25
"""Time for the rounds of one contestant."""
MOST_ROUNDS, LEAST_ROUNDS = 31, 3
WARM_SECONDS, WARM_CALLS = 0.05, 4

_IMPORT = """
import time
{before}
start = time.process_time()
import {module}
print(time.process_time() - start)
"""


def microseconds(row: Row, libraries: dict[str, Any]) -> dict[str, float]:
    """Median time of one call by library; for imports the processor time of fresh processes."""
    if row.kind == "import":
        return {name: round(1e6 * t, 1) for name, t in _imports(row, list(libraries)).items()}
    calls, before = {}, {}
    for name in ("tenferro", *row.peers):
        if name in libraries:
            calls[name], before[name] = _waiting(row, libraries[name]), libraries[name].forget
    first = row.kind == "first"
    found = _firsts(calls, before) if first else _medians(calls)
    return {name: float(f"{1e6 * t:.4g}") for name, t in found.items()}


def peaks(row: Row, libraries: dict[str, Any]) -> dict[str, int]:
    """Bytes that a warm call allocates at once, by library."""
    found = {}
    for name in ("tenferro", *row.peers):
        if name in libraries:
            call = _waiting(row, libraries[name])
            _warm(call)
            tracemalloc.start()
            call()
            found[name] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return found


def _waiting(row: Row, xp: Any) -> Call:
    """The call of a row that ends when its result is there; made ready."""
    made, wait, settle = row.make(xp), xp.wait, getattr(xp, "settle", None)
    for _ in range(2 if row.kind == "call" else 1):
        wait(made())
        if settle is not None:
            settle()
    return made if xp.library != "jax" else lambda: wait(made())


def _warm(call: Call) -> float:
    """Seconds of one call, the least of some."""
    least, start = float("inf"), time.perf_counter()
    for _ in range(1000):
        begin = time.perf_counter()
        call()
        end = time.perf_counter()
        least = min(least, end - begin)
        if end - start > WARM_SECONDS:
            break
    return max(least, 1e-8)


def _medians(calls: dict[str, Call]) -> dict[str, float]:
    counts, rounds = {}, {}
    for name, call in calls.items():
        once = _warm(call)
        counts[name] = max(1, int(BATCH_SECONDS / once))
        rounds[name] = max(LEAST_ROUNDS, min(MOST_ROUNDS, int(ROW_SECONDS / (once * counts[name]))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.freeze()  # what the libraries have loaded is not searched again and again
    gc.disable()  # JAX does work of its own in each collection, also in the turns of others
    try:
        for number in range(max(rounds.values())):
            for name, call in calls.items():
                if number < rounds[name]:
                    start = time.perf_counter()
                    for _ in range(counts[name]):
                        call()
                    times[name].append((time.perf_counter() - start) / counts[name])
    finally:
        gc.enable()
        gc.unfreeze()
    return {name: statistics.median(t) for name, t in times.items()}


def _firsts(calls: dict[str, Call], forget: dict[str, Callable[[], None]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(LEAST_ROUNDS):
        for name, call in calls.items():
            forget[name]()
            gc.collect()
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


def _imports(row: Row, libraries: Iterable[str]) -> dict[str, float]:
    module = row.name
    tasks = {"tenferro": ("numpy" if module == "tenferro_runtime" else "tenferro_runtime", module)}
    tasks |= {name: ("" if name == "numpy" else "numpy", name) for name in row.peers if name in libraries}
    environment = os.environ | settings()
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def seconds(before: str, module: str) -> float:
        code = _IMPORT.format(before=before and f"import {before}", module=module)
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        return float(done.stdout)

    times: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(1 + 5):  # the first one writes bytecode
        for name, task in tasks.items():
            taken = seconds(*task)
            if number:
                times[name].append(taken)
    return {name: statistics.median(t) for name, t in times.items()}
