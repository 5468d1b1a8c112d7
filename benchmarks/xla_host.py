"""Programs compiled by XLA on arrays in main memory, beside `np.asarray(jax.jit(f)(x))`.

    python benchmarks/xla_host.py [--rounds 101] [--only 64] [--busy]

The arguments are tensors in main memory, and NumPy arrays; JAX gets the same NumPy arrays, in numbers of 64 bits. They
take turns; the columns are medians in microseconds (`--busy`: the least, for machines with other work), ratios to
JAX, and the differences. Results are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tenferro_runtime as tr

SECONDS = 0.004
"""Of calls of one contestant in one round, about."""

Case = tuple[str, Callable[[Any], Callable[..., Any]], tuple[np.ndarray[Any, Any], ...]]


def cases() -> Iterator[Case]:
    """Name, the function for a namespace, and its arguments."""
    rng = np.random.default_rng(0)
    for shape in ((), (8,), (100,), (500,), (2000,), (64, 64), (256, 256), (1000, 1000)):
        x = np.asarray(rng.normal(size=shape))
        name = "x".join(map(str, shape)) or "0-d"
        yield f"x + 1, {name}", lambda lib: lambda v: v + 1.0, (x,)
        yield f"sin(x) * x + 1, {name}", lambda lib: lambda v: lib.sin(v) * v + 1.0, (x,)
    a, b = rng.normal(size=(2, 64, 64))
    yield "a @ b, 64x64", lambda lib: lambda a, b: a @ b, (a, b)
    yield "transposed a @ b, 64x64", lambda lib: lambda a, b: a @ b, (a.T, b)
    yield "three results, 8", lambda lib: lambda x: (x + 1.0, x * x, lib.sum(x)), (a[0, :8],)


def contestants(case: Case) -> dict[str, Callable[[], Any]]:
    """The calls, which return host arrays."""
    _, make, arrays = case
    own, other = tr.compile(make(tr), backend="xla"), jax.jit(make(jnp))
    tensors = tuple(map(tr.asarray, arrays))

    def by_jax() -> Any:
        found = other(*arrays)
        return [np.asarray(x) for x in found] if isinstance(found, tuple) else np.asarray(found)

    return {"tensor": lambda: own(*tensors), "numpy": lambda: own(*arrays), "jax": by_jax}


def seconds(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of one call of each, by rounds."""
    results = [tr.tree_leaves(call()) for call in calls.values() for _ in range(3)]
    for other in results:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12)
    start = time.perf_counter()
    calls["jax"]()
    repeats = max(1, min(200, int(SECONDS / (time.perf_counter() - start))))
    found: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name in sorted(calls, reverse=bool(turn % 2)):
            call = calls[name]
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            found[name].append((time.perf_counter() - start) / repeats)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--only", default="", help="rows whose name has one of these texts, with commas between")
    parser.add_argument("--busy", action="store_true", help="the least instead of the median")
    given = parser.parse_args()
    of_all = min if given.busy else statistics.median
    print(f"{'[us]':30}{'tensor':>9}{'NumPy':>9}{'jax.jit':>9}{'ratios':>14}{'differences':>16}")
    with jax.enable_x64(True):
        for case in cases():
            if any(part in case[0] for part in given.only.split(",")):
                found = seconds(contestants(case), given.rounds)
                tensor, array, other = (1e6 * of_all(found[name]) for name in ("tensor", "numpy", "jax"))
                print(
                    f"{case[0]:30}{tensor:9.1f}{array:9.1f}{other:9.1f}{tensor / other:8.2f}{array / other:6.2f}"
                    f"{tensor - other:+9.1f}{array - other:+7.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
