"""What a call of a compiled function costs before its kernels: at sizes that it has met, and at new ones.

    OPENBLAS_NUM_THREADS=1 python benchmarks/dispatch.py

Times are noisy where other work runs; compare the ratios.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from tenferro_tensor import Tensor, tensor


def best(call: Callable[[], Any], count: int, rounds: int = 20) -> float:
    """Seconds of one call, the best of some rounds of `count` calls."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
    return min(times)


def known_sizes() -> None:
    """A program of two small operations, at one size."""
    f = tr.compile(lambda x, y: tr.sin(x) + y)
    x, y = tensor(np.ones(8)), tensor(np.ones(8))
    best(lambda: f(x, y), 1000)
    print(f"known sizes: {best(lambda: f(x, y), 2000) * 1e9:.0f} ns a call")


def new_sizes() -> None:
    """Value and gradient of a function of a decomposition: the first call at a size against the later ones."""

    def loss(a: Any, b: Any) -> Any:
        u, s, vh = tr.linalg.svd(a @ b, full_matrices=False)  # type: ignore[attr-defined, unused-ignore]
        return tr.sum(tr.sin((u * s) @ vh)) + tr.sum(s)

    rng = np.random.default_rng(0)
    f = tr.compile(value_and_grad(loss, (0, 1)))

    def operands() -> tuple[Tensor, Tensor]:
        n, k = map(int, rng.integers(2, 30, 2))
        m = max(n, k) + int(rng.integers(0, 5))
        return tensor(rng.normal(size=(n, m))), tensor(rng.normal(size=(m, k)))

    for _ in range(5):
        f(*operands())
    ratios, firsts = [], []
    for _ in range(60):
        a, b = operands()
        start = time.perf_counter()
        f(a, b)
        first = time.perf_counter() - start
        warm = statistics.median(best(lambda: f(a, b), 1, 1) for _ in range(15))  # noqa: B023
        ratios.append(first / warm)
        firsts.append(first)
    print(
        f"new sizes: first call {statistics.median(firsts) * 1e6:.0f} us, {statistics.median(ratios):.2f} of a warm one"
    )
    print(f"traces: {f.cache_info().traces}")


if __name__ == "__main__":
    known_sizes()
    new_sizes()
