"""Derivatives of high order: Taylor mode beside nested jvp, and beside jax.experimental.jet where JAX is importable.

    python benchmarks/taylor.py [--orders 2 4 6] [--rounds 7] [--only text]

For each function and order the table shows least processor times in milliseconds, contestants taking turns: `taylor`
eager and compiled, nested `jvp` eager and compiled, and `jet` compiled; then the peak of memory that an eager run
allocates, in kilobytes. The last rows compare the Laplacian with the trace of the Hessian.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable
from math import factorial
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_ad import hessian, jvp, laplacian, taylor

try:
    import jax
    import jax.numpy as jnp
    from jax.experimental.jet import jet

    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = None

R = np.random.default_rng(0)
W1, W2 = R.normal(size=(20, 64)) / 5, R.normal(size=(64, 64)) / 8
PATIENCE_MS = 400.0

Call = Callable[[], Any]


def wave(np_: Any) -> Callable[[Any], Any]:
    """Element-wise functions of a vector."""
    return lambda x: np_.exp(np_.sin(x)) / (1.0 + x * x) + np_.tanh(x)


def network(np_: Any) -> Callable[[Any], Any]:
    """Two layers of 64 neurons."""
    return lambda x: np_.sum(np_.tanh(np_.tanh(x @ W1) @ W2))


def solution(np_: Any) -> Callable[[Any], Any]:
    """A linear system of 20 equations."""
    solve = tl.solve if np_ is tr else np_.linalg.solve
    return lambda a: solve(a, np.ones((20, 1)))


def spectrum(np_: Any) -> Callable[[Any], Any]:
    """Eigenvalues of a symmetric matrix of 20 rows."""
    return lambda a: (tl.eigvalsh if np_ is tr else np_.linalg.eigvalsh)(a)


SYMMETRIC = (lambda a: a + a.T + np.diag(np.arange(20.0) * 8))(R.normal(size=(20, 20)))
FUNCTIONS: dict[str, tuple[Callable[[Any], Callable[[Any], Any]], np.ndarray]] = {
    "element-wise, 1000": (wave, R.normal(size=1000)),
    "element-wise, 100000": (wave, R.normal(size=100000)),
    "network 20-64-64": (network, R.normal(size=20)),
    "solve 20": (solution, SYMMETRIC),
    "eigvalsh 20": (spectrum, SYMMETRIC),
}


def nested(f: Callable[[Any], Any], x: Any, terms: list[Any]) -> list[Any]:
    """Value and derivatives along a curve by jvp of jvp; all orders come from the highest one's run."""

    def along(t: Any) -> Any:
        curve = x
        for k, term in enumerate(terms, 1):
            curve = curve + term * (t**k / factorial(k))
        return f(curve)

    def with_slopes(g: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
        def both(t: Any) -> list[Any]:
            values, slopes = jvp(g, (t,), (1.0,))
            return [*values, slopes[-1]]

        return both

    g: Callable[[Any], list[Any]] = lambda t: [along(t)]
    for _ in terms:
        g = with_slopes(g)
    return g(tr.asarray(0.0))


def milliseconds(call: Call, budget: float = 0.02) -> float:
    """Milliseconds of one call, the mean over a short batch."""
    start, count = time.process_time(), 0
    while count == 0 or time.process_time() - start < budget:
        call()
        count += 1
    return (time.process_time() - start) / count * 1e3


def kilobytes(call: Call) -> float:
    """Peak of what a call allocates."""
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1024


def least(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Least times by contestant; they take turns."""
    found: dict[str, float] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            if found.get(name, 0) < PATIENCE_MS:
                found[name] = min(found.get(name, float("inf")), milliseconds(call))
    return found


def row(name: str, order: int, rounds: int) -> None:
    make, x = FUNCTIONS[name]
    terms = [R.normal(size=x.shape) / 10 for _ in range(order)]
    if x.ndim == 2:
        terms = [t + t.T for t in terms]
    f, v, ts = make(tr), tr.asarray(x), [*map(tr.asarray, terms)]

    def ours(x: Any, ts: Any) -> Any:
        return taylor(f, (x,), (ts,))

    compiled, of_nested = tr.compile(ours), tr.compile(lambda x, ts: nested(f, x, ts))
    calls: dict[str, Call] = {"taylor": lambda: ours(v, ts), "compiled": lambda: compiled(v, ts)}
    slow: Call = lambda: nested(f, v, ts)
    want = np.ravel(slow()[-1].numpy())
    for call in calls.values():
        found = np.ravel(call()[1][-1].numpy())
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-9 * np.abs(want).max())
    calls["nested"] = slow
    if order <= 4:
        calls["nested compiled"] = lambda: of_nested(v, ts)
    if jax is not None:
        try:
            g = jax.jit(lambda x, ts: jet(make(jnp), (x,), (ts,)))
            g(x, terms)
            calls["jet compiled"] = lambda: jax.block_until_ready(g(x, terms))
        except (NotImplementedError, KeyError):  # jet has no rule of some primitive
            pass
    for call in calls.values():
        call()
    times = least(calls, rounds)
    memory = [kilobytes(calls["taylor"]), kilobytes(slow)]
    shown = [f"{times[n]:9.3f}" if n in times else f"{'-':>9}" for n in COLUMNS]
    print(f"{name:22} {order:3} {' '.join(shown)} {memory[0]:11.0f} {memory[1]:11.0f}", flush=True)


COLUMNS = ("taylor", "compiled", "nested", "nested compiled", "jet compiled")


P1, P3, P32 = R.normal(size=(1, 32)), R.normal(size=(3, 32)) / 2, R.normal(size=(32, 32)) / 6


def particles(x: Any) -> Any:
    """A wave function: features of particles and of pairs, which meet in the last layer."""
    h = tr.tanh(tr.tanh(x @ P3) @ P32)
    d = x[:, None, :] - x[None, :, :]
    pairs = tr.tanh(tr.tanh(tr.sqrt(tr.sum(d * d, axis=-1, keepdims=True) + 0.1) @ P1) @ P32)
    h = tr.tanh(h + tr.sum(pairs, axis=1) @ P32)
    return tr.sum(tr.log(1 + tr.sum(h * h, axis=1)))


def laplacians(name: str, f: Callable[[Any], Any], x: Any, rounds: int) -> None:
    """The Laplacian beside the trace of the Hessian."""
    one, two = laplacian(f), lambda x: hessian(f)(x).reshape(x.size, x.size).trace()
    fast, slow, sparse = tr.compile(one), tr.compile(two), tr.compile(laplacian(f, sparse=True))
    for g in (one, fast, sparse):
        np.testing.assert_allclose(g(x).item(), two(x).item(), rtol=1e-9)
    calls: dict[str, Call] = {
        "laplacian": lambda: one(x),
        "hessian": lambda: two(x),
        "laplacian compiled": lambda: fast(x),
        "sparse compiled": lambda: sparse(x),
        "hessian compiled": lambda: slow(x),
    }
    for call in calls.values():
        call()
    for which, spent in least(calls, rounds).items():
        print(f"{name:18} {which:20} {spent:9.3f} ms {kilobytes(calls[which]):9.0f} kB")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--orders", type=int, nargs="*", default=[2, 4, 6])
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--only", default="")
    given = options.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    heads = ("taylor", "compiled", "nested", "n.compil.", "jet comp.")
    print(f"{'':22} {'K':>3} {' '.join(f'{h:>9}' for h in heads)} {'taylor kB':>11} {'nested kB':>11}")
    for name in FUNCTIONS:
        for order in given.orders if given.only in name else ():
            row(name, order, given.rounds)
    if given.only in "laplacian":
        laplacians("network 20-64-64", network(tr), tr.asarray(FUNCTIONS["network 20-64-64"][1]), given.rounds)
        laplacians("16 particles", particles, tr.asarray(R.normal(size=(16, 3))), given.rounds)


if __name__ == "__main__":
    main()
