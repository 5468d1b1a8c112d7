"""Gradients of long loops within a memory budget, one core: time, peak and repeated steps.

    python3 dev run benchmarks/transforms_loops.py [--steps N] [--elements M] [--budget BYTES] [--rounds R]

The loop is a recurrence of M numbers over N steps. Rows: the value alone; the gradient that stores everything, as far
as memory allows; the gradients of a `fori_loop` and of a `while_loop` within the budget; JAX's gradient that stores
everything, and one that is written for little memory: two scans in each other, `jax.checkpoint` around the inner one.
The peak is what NumPy's allocator and ours gave out at once, of JAX what XLA plans for temporaries. Beside the number
of states stands the least number of steps that can be made with so many for each step of the loop.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

from contestants import limit, optional

STORED_LIMIT = 2**31
"""Bytes that a gradient may store that stores everything."""


def fewest(n: int, slots: int) -> int:
    """Steps that binomial checkpointing repeats."""
    r = next(r for r in range(n + 1) if math.comb(slots + r, slots) >= n)
    return r * n - math.comb(slots + r, r - 1) if r else 0


def peak_of(f: Callable[[], Any]) -> int:
    """Bytes that were given out at once."""
    tracemalloc.start()
    try:
        f()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def slots_of(program: Any) -> int:
    """The number of states that a gradient stores."""
    from tenferro_runtime.ir import inner_programs

    for eq in program.equations:
        if eq.op.primitive.name == "loop_backward":
            return int(eq.op.params["slots"])
        found = max([slots_of(p) for p in inner_programs(eq.op.params)], default=0)
        if found:
            return found
    return 0


def ours(n: int, m: int, budget: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """Contestants of tenferro, with the number of states that they store."""
    import numpy as np

    import tenferro_runtime as tr
    from tenferro_ad import grad

    x = tr.linspace(0.0, 1.0, m)

    def step(x: Any) -> Any:
        return 0.999 * x + 0.001 * x * x

    def known(x: Any, memory_budget: int | None) -> Any:
        return tr.sum(tr.fori_loop(0, n, lambda i, x: step(x), x, memory_budget=memory_budget) ** 2)

    def unknown(x: Any, memory_budget: int | None) -> Any:
        body = lambda s: (s[0] + 1, step(s[1]))
        return tr.sum(tr.while_loop(lambda s: s[0] < n, body, (0, x), memory_budget=memory_budget)[1] ** 2)

    loss = tr.compile(lambda x: known(x, None))
    found: dict[str, tuple[Callable[[], Any], int]] = {"value": (lambda: loss(x), 0)}
    if 8 * n * m <= STORED_LIMIT:
        everything = tr.compile(grad(lambda x: known(x, None)))
        found["stores everything"] = (lambda: everything(x), 0)
    for name, f in (("fori_loop in budget", known), ("while_loop in budget", unknown)):
        derivative = grad(lambda x, f=f: f(x, budget))
        compiled = tr.compile(derivative)
        found[name] = (partial(compiled, x), slots_of(tr.trace(derivative, x)))
    results = {name: np.asarray(run()) for name, (run, _) in found.items()}
    within = results["fori_loop in budget"]
    assert np.array_equal(results.get("stores everything", within), within), "gradients differ"
    np.testing.assert_allclose(results["while_loop in budget"], within, rtol=1e-9)
    return found


def theirs(n: int, m: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """Contestants of JAX, with the bytes that they plan for temporaries."""
    jax = optional("jax")
    if jax is None:
        return {}
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    outer = math.isqrt(n)
    while n % outer:
        outer -= 1
    x = jnp.linspace(0.0, 1.0, m)

    def step(x: Any, _: Any) -> tuple[Any, None]:
        return 0.999 * x + 0.001 * x * x, None

    def everything(x: Any) -> Any:
        return jnp.sum(jax.lax.scan(step, x, None, length=n)[0] ** 2)

    def sparing(x: Any) -> Any:
        inner = jax.checkpoint(lambda x: jax.lax.scan(step, x, None, length=n // outer)[0])
        return jnp.sum(jax.lax.scan(lambda x, _: (inner(x), None), x, None, length=outer)[0] ** 2)

    found: dict[str, tuple[Callable[[], Any], int]] = {}
    for name, f in (("jax stores everything", everything), (f"jax.checkpoint, {outer} blocks", sparing)):
        if f is everything and 8 * n * m > STORED_LIMIT:
            continue
        compiled = jax.jit(jax.grad(f)).lower(x).compile()
        found[name] = (partial(_finished, compiled, x), int(compiled.memory_analysis().temp_size_in_bytes))
    return found


def _finished(compiled: Any, x: Any) -> Any:
    return compiled(x).block_until_ready()


def timed(run: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--elements", type=int, default=4096)
    parser.add_argument("--budget", type=int, default=2**26)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    limit(1)
    n, m = chosen.steps, chosen.elements
    mine, other = ours(n, m, chosen.budget), theirs(n, m)
    runs = {name: run for name, (run, _) in (mine | other).items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(chosen.rounds):
        for name, run in runs.items():
            times[name].append(timed(run))
    print(f"{n} steps of {m} numbers, a budget of {chosen.budget / 2**20:.0f} MiB")
    for name, seconds in times.items():
        peak = other[name][1] if name in other else peak_of(runs[name])
        slots = mine[name][1] if name in mine else 0
        steps = f"{slots} states, at least {fewest(n, slots) / n:.3f} steps a step" if slots else ""
        print(f"{name:28} {statistics.median(seconds):8.3f} s {peak / 2**20:9.1f} MiB  {steps}")


if __name__ == "__main__":
    main()
