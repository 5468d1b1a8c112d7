"""Compiled element-wise functions and reductions against NumPy, and JAX and PyTorch where they can be imported.

Medians of interleaved rounds in one thread each; ratios above 1 mean that tenferro is faster::

    python3 dev run benchmarks/native_fused.py

With ``--threads N`` all have N threads, NumPy always one::

    python3 dev run benchmarks/native_fused.py --threads 2
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from contestants import limit

THREADS = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 1
limit(THREADS)

import numpy as np  # noqa: E402 - after the number of threads

import tenferro_runtime as tr  # noqa: E402
from tenferro_cpu.native import Engine, engine  # noqa: E402
from tenferro_cpu.native.codegen.whole import LEVEL, NAME, render  # noqa: E402
from tenferro_runtime.lowering import lower  # noqa: E402
from tenferro_runtime.running.fusion import wait  # noqa: E402

Call = Callable[[], Any]


def peers() -> dict[str, Any]:
    """The libraries that can be imported here."""
    found: dict[str, Any] = {}
    with suppress(ImportError):
        import jax

        jax.config.update("jax_enable_x64", True)
        found["jax"] = jax
    with suppress(ImportError):
        import torch

        torch.set_num_threads(THREADS)
        found["torch"] = torch
    return found


def formula(xp: Any, long: bool) -> Callable[..., Any]:
    return (lambda a, b, c: xp.tanh(a * b + c) * xp.exp(-a)) if long else (lambda a, b, c: a * b + c)


def contenders(
    ours: Callable[..., Any], theirs: Callable[[Any], Callable[..., Any]], arrays: list[Any], have: dict[str, Any]
) -> dict[str, Call]:
    """One call per library on the same data."""
    own = [tr.asarray(x) for x in arrays]
    for _ in range(2):
        ours(*own)
    wait()
    calls: dict[str, Call] = {"tenferro": lambda: ours(*own)}
    f = theirs(np)
    calls["numpy"] = lambda: f(*arrays)
    if "jax" in have:
        g, on_jax = have["jax"].jit(theirs(have["jax"].numpy)), [have["jax"].numpy.asarray(x) for x in arrays]
        calls["jax.jit"] = lambda: g(*on_jax).block_until_ready()
    if "torch" in have:
        h, on_torch = theirs(have["torch"]), [have["torch"].from_numpy(x) for x in arrays]
        calls["torch"] = lambda: h(*on_torch)
    return calls


def medians(calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """Median time of one call of each, in turns."""
    repeats = {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, int(seconds / 11 / max(time.perf_counter() - start, 1e-7) / len(calls)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(11):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(t) for name, t in times.items()}


def show(what: str, found: dict[str, float]) -> None:
    ours = found["tenferro"]
    ratios = "  ".join(f"{name} {t / ours:6.2f}" for name, t in found.items() if name != "tenferro")
    print(f"{what:<36}{ours * 1e6:12.2f} us   {ratios}", flush=True)


def compile_times() -> None:
    """Processor time of a cold compile, and of a reload from disk."""
    x, cold = tr.asarray(np.ones(8)), Engine(None)
    function = lower(tr.trace(formula(tr, True), x, x, x))
    times = []
    for k in range(7):
        start = time.thread_time()
        cold.function(f"{render(function, cold.host).text}\n; {k}", NAME, level=LEVEL)
        times.append(time.thread_time() - start)
    print(f"compile tanh(a*b+c)*exp(-a): cold {statistics.median(times) * 1e3:.1f} ms", end="")
    text = render(function, cold.host).text
    engine().function(text, NAME, level=LEVEL)
    cache, again = engine()._cache, []
    for _ in range(7):
        fresh = Engine(cache)
        fresh.function("define void @first() {\n  ret void\n}", "first")  # the first one sets the linker up
        start = time.thread_time()
        fresh.function(text, NAME, level=LEVEL)
        again.append(time.thread_time() - start)
    print(f", from disk {statistics.median(again) * 1e3:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for one line")
    parser.add_argument("--largest", type=int, default=16_000_000, help="elements of the largest arrays")
    parser.add_argument("--threads", type=int, default=1, help="threads of every library")
    options = parser.parse_args()
    have, rng = peers(), np.random.default_rng(0)
    print(f"tenferro on {engine().host.level}, against numpy {np.__version__}, {', '.join(have) or 'no other library'}")
    print("ratio: time of the other library over ours")
    compile_times()
    for dtype in ("float64", "float32"):
        for n in (100, 10_000, 1_000_000, 16_000_000):
            if n > options.largest:
                continue
            arrays = [rng.standard_normal(n).astype(dtype) for _ in range(3)]
            for long in (True, False):
                ours = tr.compile(formula(tr, long))
                name = "tanh(a*b+c)*exp(-a)" if long else "a*b+c"
                calls = contenders(ours, lambda xp, long=long: formula(xp, long), arrays, have)
                show(f"{name} {dtype} {n}", medians(calls, options.seconds))
    for shape in ((1, 100), (1, 10_000), (1, 1_000_000), (1000, 1000), (100_000, 10), (1_000_000, 4)):
        arrays = [rng.standard_normal(shape) for _ in range(2)]
        ours = tr.compile(lambda x, y: tr.sum(tr.exp(x) * y, axis=1))
        calls = contenders(ours, lambda xp: lambda x, y: (xp.exp(x) * y).sum(1), arrays, have)
        show(f"sum(exp(x)*y, axis=1) {shape[0]}x{shape[1]}", medians(calls, options.seconds))


if __name__ == "__main__":
    main()
