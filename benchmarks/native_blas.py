"""Matrix products and the thread policy: tenferro beside NumPy, PyTorch and JAX.

    python3 dev run benchmarks/native_blas.py [--rounds N] [--only products|threads] [--wide]

Products run on one core, the contestants of a row in turns; medians in microseconds, and how many times as long the
others take. ``--wide`` first makes NumPy's OpenBLAS take AVX2 kernels, as it does on AVX-512 processors that it does
not know, and has tenferro take the AVX-512 ones of SciPy's copy. The second part is a loop of eigh(64) and a product of
200x200 matrices in a process with all BLAS threads: alone, split over four Python threads, and beside another process
that keeps a core busy.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from contestants import optional

LOOPS = 100
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
CASES = [
    *[(kind, 0, n) for kind in ("float64", "float32", "complex128") for n in (2, 4, 8, 16, 32, 64, 128, 256, 512)],
    *[(kind, b, n) for kind in ("float64", "float32", "complex128") for b, n in ((64, 2), (64, 4), (64, 8), (4096, 4))],
    *[("float64", 32, n) for n in (16, 64)],
]


def products(rounds: int) -> None:
    """Print one line for each size."""
    import numpy as np

    os.environ.pop("OPENBLAS_CORETYPE", None)
    import tenferro_cpu
    import tenferro_runtime as tr

    torch, jax = optional("torch"), optional("jax")
    if torch is not None:
        torch.set_num_threads(1)
    print(tenferro_cpu.info()["products"])
    print(f"{'':24}{'tenferro us':>12}{'GFlop/s':>9}{'numpy':>8}{'torch':>8}{'jax':>8}   (times tenferro's time)")
    rng = np.random.default_rng(0)
    for kind, count, n in CASES:
        shape = (count, n, n) if count else (n, n)
        x, y = (rng.normal(size=shape).astype(kind) for _ in range(2))
        tx, ty = tr.asarray(x), tr.asarray(y)
        calls: dict[str, Callable[[], Any]] = {
            "tenferro": lambda tx=tx, ty=ty: tx @ ty,
            "numpy": lambda x=x, y=y: x @ y,
        }
        if torch is not None:
            px, py = torch.from_numpy(x), torch.from_numpy(y)
            multiply = torch.bmm if count else torch.mm
            calls["torch"] = lambda px=px, py=py, multiply=multiply: multiply(px, py)
        if jax is not None:
            jx, jy, product = jax.numpy.asarray(x), jax.numpy.asarray(y), jax.jit(jax.numpy.matmul)
            calls["jax"] = lambda jx=jx, jy=jy, product=product: product(jx, jy).block_until_ready()
        medians = measured(calls, rounds)
        flops = 2 * max(1, count) * n**3 * (4 if kind == "complex128" else 1)
        ours = medians["tenferro"]
        row = "".join(f"{medians[k] / ours:8.2f}" if k in medians else f"{'-':>8}" for k in ("numpy", "torch", "jax"))
        stack = f"{count} x " if count else ""
        print(f"{kind:11}{stack:>7}{n:>4}^2 {ours * 1e6:12.2f}{flops / ours / 1e9:9.1f}{row}", flush=True)


def measured(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds per call, the contestants in turns."""
    repeats = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, int(0.001 / (time.perf_counter() - start)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(values) for name, values in times.items()}


def loop(contestant: str, rounds: int) -> None:
    """Print the times of one contestant: alone, over four Python threads, beside a busy process."""
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(64, 64)), rng.normal(size=(200, 200))
    a = a + a.T
    if contestant == "tenferro":
        import tenferro_runtime as tr

        ta, tb = tr.asarray(a), tr.asarray(b)

        def step() -> None:
            tr.linalg.eigh(ta)
            tb @ tb
    else:

        def step() -> None:
            np.linalg.eigh(a)
            b @ b

    def work(times: int) -> None:
        for _ in range(times):
            step()

    def timed(run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def four() -> None:
        pool = [threading.Thread(target=work, args=(LOOPS // 4,)) for _ in range(4)]
        for t in pool:
            t.start()
        for t in pool:
            t.join()

    work(5)
    alone, split, busy = [], [], []
    for _ in range(rounds):
        alone.append(timed(lambda: work(LOOPS)))
        split.append(timed(four))
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
            time.sleep(0.05)
            busy.append(timed(lambda: work(LOOPS)))
            other.kill()
    print(" ".join(f"{statistics.median(values):.4f}" for values in (alone, split, busy)))


def threads(rounds: int) -> None:
    """Print the loop's times of all contestants, and how they compare with one thread alone."""
    rows = {
        "NumPy, 1 BLAS thread": ("numpy", dict.fromkeys(THREADS, "1")),
        "NumPy, all threads": ("numpy", {}),
        "tenferro": ("tenferro", {}),
    }
    clean = {k: v for k, v in os.environ.items() if k not in THREADS}
    times: dict[str, list[list[float]]] = {name: [] for name in rows}
    for _ in range(rounds):  # in turns, so that a slow phase of the machine hits all of them
        for name, (contestant, environment) in rows.items():
            command = [sys.executable, __file__, "--loop", contestant, "--rounds", "1"]
            done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=True)
            times[name].append([float(v) for v in done.stdout.split()])
    print(
        f"\n{LOOPS} x (eigh(64), 200^2 @ 200^2), seconds{'alone':>10}{'4 threads':>12}{'busy core':>12}   median, least"
    )
    for name, table in times.items():
        columns = list(zip(*table, strict=True))
        print(f"{name:41}" + "".join(f"{statistics.median(v):>11.3f} " for v in columns), end="  ")
        print(" ".join(f"{min(v):.3f}" for v in columns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", choices=("products", "threads"))
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.loop:
        loop(given.loop, given.rounds)
        return
    if given.only != "threads":
        for name in THREADS:
            os.environ[name] = "1"
        if given.wide:
            os.environ |= {"OPENBLAS_CORETYPE": "Haswell", "TENFERRO_CPU_BLAS": "avx512"}
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(cores)})
        products(given.rounds)
        os.sched_setaffinity(0, cores)
        for name in (*THREADS, "OPENBLAS_CORETYPE", "TENFERRO_CPU_BLAS"):
            os.environ.pop(name, None)
    if given.only != "products":
        threads(given.rounds)


if __name__ == "__main__":
    main()
