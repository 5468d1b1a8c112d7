"""Contestants that take turns: trees of arguments, warming up, medians of rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def mapped(f: Callable[[Any], Any], tree: Any) -> Any:
    return tuple(mapped(f, t) for t in tree) if isinstance(tree, tuple) else f(tree)


def leaves(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, (tuple, list)):
        return [x for t in tree for x in leaves(t)]
    return [np.asarray(tree)]


def seconds(call: Callable[[], Any], budget: float) -> float:
    """Seconds of one call, of as many as fit in a budget."""
    count, start = 0, time.perf_counter()
    while not count or time.perf_counter() - start < budget:
        call()
        count += 1
    return (time.perf_counter() - start) / count


def warm(call: Callable[[], Any]) -> None:
    """Call until native code has come, which is made beside."""
    end = time.perf_counter() + 2.0
    while time.perf_counter() < end:
        call()


def medians(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Seconds of a call of each contestant: the median of rounds in which all take their turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, 0.05))
    return {name: statistics.median(t) for name, t in times.items()}
