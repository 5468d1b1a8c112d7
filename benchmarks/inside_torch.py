"""tenferro functions inside PyTorch beside the same in PyTorch: values, and values with gradients.

    PYTHONPATH=build/torch python3 dev run benchmarks/inside_torch.py

Processor time of one core in microseconds, the least of several rounds that take turns; needs PyTorch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import torch  # noqa: E402 - it reads the number of threads

import tenferro_runtime as tr  # noqa: E402
from tenferro_ad.adapters.torch import as_torch  # noqa: E402

ROUNDS = 7


def layers(m: Any) -> Callable[..., Any]:
    return lambda x, w, b, v: m.sum(m.tanh(x @ w + b) @ v)


def steps(m: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        c = x[0]
        for i in range(1, 30):
            c = m.tanh(c * 0.9 + x[i])
        return m.sum(c)

    return f


def chain(m: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        for _ in range(10):
            x = m.sin(x) * x + m.cos(x)
        return m.sum(x)

    return f


CASES: dict[str, tuple[Callable[[Any], Callable[..., Any]], list[tuple[int, ...]], int]] = {
    "sum(sin(x) x), 100": (lambda m: lambda x: m.sum(m.sin(x) * x), [(100,)], 500),
    "two layers, 8 x 16": (layers, [(8, 16), (16, 16), (16,), (16, 4)], 500),
    "two layers, 64 x 256": (layers, [(64, 256), (256, 256), (256,), (256, 10)], 40),
    "thirty steps, 32": (steps, [(30, 32)], 100),
    "ten steps, 1e5": (chain, [(100_000,)], 5),
    "singular vectors, 64 x 64": (lambda m: lambda x: m.sum(m.linalg.svd(x, full_matrices=False)[0]), [(64, 64)], 20),
}


def elapsed(f: Callable[[], Any], count: int) -> float:
    start = time.thread_time()
    for _ in range(count):
        f()
    return (time.thread_time() - start) / count * 1e6


def with_gradient(f: Callable[..., Any], xs: list[Any]) -> Callable[[], Any]:
    return lambda: torch.autograd.grad(f(*xs), xs)


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'':28}{'value':>10}{'PyTorch':>10}{'gradient':>10}{'PyTorch':>10}")
    for name, (make, shapes, count) in CASES.items():
        xs = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
        plain = [x.detach() for x in xs]
        ours, theirs = as_torch(make(tr)), make(torch)
        calls = [partial(f, *plain) for f in (ours, theirs)] + [with_gradient(f, xs) for f in (ours, theirs)]
        for call in calls:
            elapsed(call, count)
        rounds = [[elapsed(call, count) for call in calls] for _ in range(ROUNDS)]
        print(f"{name:28}" + "".join(f"{min(column):10.1f}" for column in zip(*rounds, strict=True)))


if __name__ == "__main__":
    main()
