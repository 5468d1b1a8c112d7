"""Compiled programs: what a call costs, part by part, beside JAX and PyTorch where they can be imported.

    python3 dev run benchmarks/programs.py [PART ...] [--seconds S]

The contestants of a row run in turns, round after round, in one thread each; medians, and ratios above 1 mean that
tenferro is faster. A part is a function with the mark `part`; its name chooses it.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from array_programs import energy, thirty
from contestants import limit

limit(1)

import numpy as np  # noqa: E402 - after the number of threads

import tenferro_runtime as tr  # noqa: E402
from tenferro_ad import value_and_grad  # noqa: E402
from tenferro_einsum import einsum  # noqa: E402
from tenferro_runtime.running import fusion  # noqa: E402

Calls = dict[str, Callable[[], Any]]
ROUNDS = 21
PARTS: dict[str, Callable[[Bench], None]] = {}


@dataclass
class Bench:
    """What the parts share: peers, time for one row, random numbers."""

    seconds: float
    peers: dict[str, Any] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def row(self, what: str, calls: Calls, unit: int = 1) -> None:
        """Measure the calls in turns and print a line; `unit` operations are one call."""
        found = medians(calls, self.seconds)
        first, *others = found
        ratios = "  ".join(f"{name} {found[name] / found[first]:6.2f}" for name in others)
        print(f"{what:<44}{found[first] / unit * 1e6:12.3f} us   {ratios}", flush=True)


def part(f: Callable[[Bench], None]) -> Callable[[Bench], None]:
    """Make a function a part of this benchmark."""
    PARTS[f.__name__] = f
    return f


def seconds_of(call: Callable[[], Any]) -> float:
    """Time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def medians(calls: Calls, seconds: float) -> dict[str, float]:
    """Median time of one call of each, in turns."""
    repeats = {}
    for name, call in calls.items():
        call()
        once = min([seconds_of(call) for _ in range(5)])
        repeats[name] = max(1, int(seconds / ROUNDS / max(once, 1e-7) / len(calls)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(t) for name, t in times.items()}


def peers() -> dict[str, Any]:
    """The libraries that can be imported here."""
    found: dict[str, Any] = {}
    with suppress(ImportError):
        import jax

        jax.config.update("jax_enable_x64", True)
        found["jax"] = jax
    with suppress(ImportError):
        import torch

        torch.set_num_threads(1)
        found["torch"] = torch
    return found


def program(f: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """Compiled, its kernels in place."""
    compiled = tr.compile(f)
    compiled(*args)
    fusion.wait()
    return compiled


def theirs(bench: Bench, make: Callable[[Any], Callable[..., Any]], arrays: list[Any]) -> Calls:
    """The calls of the peers on the same data."""
    calls: Calls = {}
    if "jax" in bench.peers:
        jax = bench.peers["jax"]
        f, on_jax = jax.jit(make(jax.numpy)), [jax.numpy.asarray(x) for x in arrays]
        calls["jax.jit"] = lambda: jax.block_until_ready(f(*on_jax))
    if "torch" in bench.peers:
        torch = bench.peers["torch"]
        g, on_torch = make(torch), [torch.from_numpy(x) for x in arrays]
        calls["torch"] = lambda: g(*on_torch)
    return calls


@part
def fused(bench: Bench) -> None:
    """Fused programs beside the same functions called eagerly."""
    for name, make, shapes in (
        ("35 element-wise operations", thirty, lambda n: [(n,), (n,)]),
        ("sum of 8 with a row", energy, lambda n: [(max(1, n // 100), min(n, 100)), (min(n, 100),)]),
    ):
        for n in (8, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000):
            arrays = [bench.rng.standard_normal(s) for s in shapes(n)]
            args = [tr.asarray(x) for x in arrays]
            single, ours = make(tr), program(make(tr), *args)
            calls: Calls = {
                "fused": lambda ours=ours, args=args: ours(*args),
                "eager": lambda single=single, args=args: single(*args),
            }
            bench.row(f"{name}, {n} elements", calls | theirs(bench, make, arrays))


@part
def parts(bench: Bench) -> None:
    """Programs that cannot be one native function, in parts and in single steps."""

    def sums(x: Any) -> Any:
        y = (x * 2.5 + 0.125) * x - x / 3.0 + tr.abs(x)
        return y / tr.sum(y) + x * 2.0

    def chosen(x: Any) -> Any:
        y = tr.sin(tr.compress(x, x > 0)) * 2.0 + 1.0
        return tr.sum(y * y)

    def loop(x: Any) -> Any:
        return tr.fori_loop(0, 50, lambda i, y: tr.sin(y) * 1.1, tr.compress(x, x > 0))

    for name, f, deterministic in (
        ("deterministic, with a sum", sums, True),
        ("a data-dependent size", chosen, False),
        ("its gradient", value_and_grad(chosen), False),
        ("a loop on a data-dependent size", loop, False),
    ):
        for n in (8, 1000, 1_000_000):
            x = tr.asarray(bench.rng.standard_normal(n))
            with tr.Runtime(deterministic=deterministic):
                whole = program(f, x)
            with tr.Runtime(deterministic=deterministic, fusion=False):
                single = program(f, x)
            calls: Calls = {
                "parts": lambda whole=whole, x=x: whole(x),
                "steps": lambda single=single, x=x: single(x),
                "eager": lambda f=f, x=x: f(x),
            }
            bench.row(f"{name}, {n} elements", calls)


@part
def chain(bench: Bench) -> None:
    """Value and gradient of 20 steps ``tanh(x @ w)`` on 4x4 matrices."""

    def make(xp: Any) -> Callable[..., Any]:
        def f(x: Any, w: Any) -> Any:
            for _ in range(20):
                x = xp.tanh(x @ w)
            return xp.sum(x)

        return f

    arrays = [bench.rng.standard_normal((4, 4)) / 2 for _ in range(2)]
    args = [tr.asarray(x) for x in arrays]
    ours = program(value_and_grad(make(tr), argnums=(0, 1)), *args)
    calls: Calls = {"tenferro": lambda: ours(*args)}
    if "jax" in bench.peers:
        jax = bench.peers["jax"]
        f = jax.jit(jax.value_and_grad(make(jax.numpy), argnums=(0, 1)))
        on_jax = [jax.numpy.asarray(x) for x in arrays]
        calls["jax.jit"] = lambda: jax.block_until_ready(f(*on_jax))
    bench.row("value and gradient of a chain of 20, 4x4", calls)


def einsums(xp: Any, einsum: Callable[..., Any], w: Any, steps: int) -> Callable[[Any], Any]:
    """A loss of that many steps of einsum and tanh."""

    def loss(x: Any) -> Any:
        for _ in range(steps):
            x = xp.tanh(einsum("ij,jk->ik", x, w))
        return xp.sum(x)

    return loss


@part
def ready(bench: Bench) -> None:
    """The whole first call of N steps of einsum and tanh on 4x4 matrices with their gradient, trace to result."""
    raw_w, raw_x = bench.rng.normal(size=(4, 4)) * 0.3, bench.rng.normal(size=(4, 4))
    w, x = tr.asarray(raw_w), tr.asarray(raw_x)
    calls: dict[str, Callable[[int], Any]] = {
        "tenferro": lambda n: tr.compile(value_and_grad(einsums(tr, einsum, w, n)))(x)
    }
    if "jax" in bench.peers:
        jax = bench.peers["jax"]
        xj = jax.numpy.asarray(raw_x)
        calls["jax"] = lambda n: jax.block_until_ready(
            jax.jit(jax.value_and_grad(einsums(jax.numpy, jax.numpy.einsum, raw_w, n)))(xj)
        )
    for n in (50, 100, 200, 400, 800):
        line = f"{n:4} steps"
        for name, call in calls.items():
            if name == "tenferro" or n <= 100:  # JAX takes tens of seconds for more
                times = []
                for _ in range(4 if name == "tenferro" else 1):
                    start = time.perf_counter()
                    call(n)
                    times.append(time.perf_counter() - start)
                line += f"   {name} {min(times) * 1e3:8.1f} ms, {min(times) * 1e3 / n:.3f} for each"
        print(line, flush=True)


def steps(scan: Callable[..., Any], xp: Any) -> Callable[..., Any]:
    """The end of a recurrence, ``c = tanh(c * w + x)`` over the rows x."""
    return lambda w, xs: xp.sum(scan(lambda c, x: (xp.tanh(c * w + x), None), xs[0], xs)[0])


def in_python(xp: Any) -> Callable[..., Any]:
    """The same by Python's own loop."""

    def loop(w: Any, xs: Any) -> Any:
        c = xs[0]
        for i in range(xs.shape[0]):
            c = xp.tanh(c * w + xs[i])
        return xp.sum(c)

    return loop


@part
def control_flow(bench: Bench) -> None:
    """Time of one step of a scan of 1000 over rows of 8, and of one step of its value and gradient."""
    count = 1000
    raw = [bench.rng.standard_normal(8) * 0.3, bench.rng.standard_normal((count, 8))]
    args = [tr.asarray(x) for x in raw]
    f = steps(tr.scan, tr)
    ours, gradient = program(f, *args), program(value_and_grad(f, argnums=(0, 1)), *args)
    loop, plain = in_python(tr), in_python(np)
    forward: Calls = {
        "tenferro": lambda: ours(*args),
        "its Python loop": lambda: loop(*args),
        "NumPy's": lambda: plain(*raw),
    }
    backward: Calls = {
        "tenferro": lambda: gradient(*args),
        "its Python loop": lambda: value_and_grad(loop, argnums=(0, 1))(*args),
    }
    if "jax" in bench.peers:
        jax = bench.peers["jax"]
        on_jax = [jax.numpy.asarray(x) for x in raw]
        g = steps(jax.lax.scan, jax.numpy)
        theirs, their_gradient = jax.jit(g), jax.jit(jax.value_and_grad(g, argnums=(0, 1)))
        forward["jax.lax.scan"] = lambda: theirs(*on_jax).block_until_ready()
        backward["jax.lax.scan"] = lambda: jax.block_until_ready(their_gradient(*on_jax))
    bench.row("one step", forward, count)
    bench.row("value and gradient of one step", backward, count)


def adaptive(x: Any, tolerance: Any) -> Any:
    """A low-rank approximation whose rank follows from the singular values."""
    u, s, vh = tr.linalg.svd(x, full_matrices=False)
    rank = tr.count_nonzero(s > tolerance * s[0])
    u, s, vh = tr.truncate(u, rank, axis=1), tr.truncate(s, rank), tr.truncate(vh, rank)
    return tr.sum(tr.sin((u * s) @ vh)) + tr.sum(s**3)


@part
def adaptive_rank(bench: Bench) -> None:
    """Value and gradient of a truncated SVD at every rank that its tolerance may choose, one call of each."""
    for shape in ((6, 5), (60, 51)):
        x = tr.asarray(bench.rng.standard_normal(shape))
        s = np.linalg.svd(x.numpy(), compute_uv=False)
        ranks = [tr.asarray((a + b) / 2 / s[0]) for a, b in itertools.pairwise(s)]
        f = value_and_grad(adaptive)
        whole, parts = tr.compile(f), value_and_grad(tr.compile(adaptive))
        calls = {
            name: lambda g=g, x=x, ranks=ranks: [g(x, tol) for tol in ranks]
            for name, g in (("compiled", whole), ("of the compiled", parts), ("eager", f))
        }
        for _ in range(2):
            calls["compiled"](), calls["of the compiled"]()
        fusion.wait()
        bench.row(f"{len(ranks)} ranks of {shape}", calls, len(ranks))
        print(f"    traces: {whole.cache_info().traces}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all of them by default")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for one line")
    options = parser.parse_args()
    bench = Bench(options.seconds, peers())
    print(f"tenferro, against {', '.join(bench.peers) or 'no other library'}; ratio: their time over ours")
    for name in options.parts or PARTS:
        print(f"{name}: {(PARTS[name].__doc__ or '').splitlines()[0]}")
        PARTS[name](bench)


if __name__ == "__main__":
    main()
