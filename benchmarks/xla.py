"""Programs compiled by XLA beside the same functions in `jax.jit`: a call, and the first call.

    python benchmarks/xla.py [--rounds 9] [--only scan,fft] [--busy] [--first] [--calls]

Both compute with arrays on the same device of XLA, in numbers of 64 bits, and wait for the results. They take turns;
the columns are medians in microseconds (`--busy`: the least processor time of all threads, for machines with other
work), and their ratios. The first call is tracing, lowering and compiling, with all caches of both empty, in
milliseconds. Results are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tenferro_ad as ad
import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_einsum import einsum
from tenferro_runtime.extension import caches

DEVICE = "xla:cpu:0"
SEARCH = 0.3
"""Seconds of one round of calls of one contestant, at most."""


class Row(NamedTuple):
    """A function twice, and its arguments.

    Attributes:
        own: makes the function for tenferro.
        other: makes that for JAX.
        arguments: NumPy arrays.
    """

    own: Callable[[], Callable[..., Any]]
    other: Callable[[], Callable[..., Any]]
    arguments: tuple[np.ndarray[Any, Any], ...]


def chain(lib: Any) -> Callable[[Any, Any], Any]:
    def f(x: Any, y: Any) -> Any:
        for i in range(12):
            x, y = lib.sin(x) * y + 0.1 * i, lib.exp(-y * y) + lib.where(x > 0, x, 0.5 * x)
        return x + y

    return f


def perceptron(lib: Any) -> Callable[..., Any]:
    def loss(w1: Any, w2: Any, x: Any) -> Any:
        hidden = lib.tanh(x @ w1)
        logits = hidden @ w2
        top = lib.max(logits, axis=1, keepdims=True)
        return -lib.mean(logits[:, 0] - top[:, 0] - lib.log(lib.sum(lib.exp(logits - top), axis=1)))

    return loss


def matmuls(x: Any, y: Any) -> Any:
    for _ in range(6):
        x = x @ y / 16.0
    return x


def network(contract: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, c, d, e, f: contract("abi,bcj,cdk,ial,jlm,kmn->dn", a, b, c, d, e, f)


def own_scan(x: Any, w: Any) -> Any:
    return tr.scan(lambda c, _: ((c := tr.tanh(c @ w)), tr.sum(c)), x, None, 1000)


def other_scan(x: Any, w: Any) -> Any:
    return jax.lax.scan(lambda c, _: ((c := jnp.tanh(c @ w)), jnp.sum(c)), x, None, 1000)


def own_walk(x: Any) -> Any:
    return tr.while_loop(lambda c: tr.sum(c * c) < 1e6, lambda c: c * 1.01 + 0.001, x)


def other_walk(x: Any) -> Any:
    return jax.lax.while_loop(lambda c: jnp.sum(c * c) < 1e6, lambda c: c * 1.01 + 0.001, x)


def own_draw(key: Any) -> Any:
    return tr.random.normal(key, (1000, 100))


def other_draw(seed: Any) -> Any:
    return jax.random.normal(jax.random.key(seed), (1000, 100))


def rows() -> dict[str, Row]:
    """All rows by name."""
    rng = np.random.default_rng(0)

    def same(f: Callable[[Any], Callable[..., Any]], *arguments: Any) -> Row:
        return Row(lambda: f(tr), lambda: f(jnp), arguments)

    systems = rng.normal(size=(64, 16, 16)) + 8 * np.eye(16)
    places = rng.integers(0, 2000, 5000)
    tensors = tuple(rng.normal(size=(8, 8, 8)) for _ in range(6))
    weights = (rng.normal(size=(64, 128)) / 8, rng.normal(size=(128, 10)) / 8, rng.normal(size=(256, 64)))
    return {
        "tiny call": same(lambda lib: lambda x: x + 1.0, np.ones(3)),
        "element-wise chain": same(chain, rng.normal(size=100_000), rng.normal(size=100_000)),
        "gradient of a perceptron": Row(
            lambda: ad.grad(perceptron(tr), argnums=(0, 1)), lambda: jax.grad(perceptron(jnp), argnums=(0, 1)), weights
        ),
        "scan of 1000 steps": Row(
            lambda: own_scan, lambda: other_scan, (rng.normal(size=32), rng.normal(size=(32, 32)) / 8)
        ),
        "chain of matmuls": same(lambda lib: matmuls, rng.normal(size=(256, 256)), rng.normal(size=(256, 256))),
        "batched solve": Row(
            lambda: lambda a, b: tl.solve(a, b), lambda: lambda a, b: jnp.linalg.solve(a, b),
            (systems, rng.normal(size=(64, 16, 4))),
        ),
        "svd": Row(
            lambda: lambda a: tl.svd(a, full_matrices=False), lambda: lambda a: jnp.linalg.svd(a, full_matrices=False),
            (rng.normal(size=(96, 64)),),
        ),
        "fft": same(lambda lib: lambda x: lib.abs(lib.fft.fft2(x)), rng.normal(size=(16, 128, 128))),
        "einsum network": Row(lambda: network(einsum), lambda: network(jnp.einsum), tensors),
        "gather and scatter": Row(
            lambda: lambda x, i: x.at[i].add(x[i] * 2.0), lambda: lambda x, i: x.at[i].add(x[i] * 2.0),
            (rng.normal(size=(2000, 16)), places),
        ),
        "random numbers": Row(lambda: own_draw, lambda: other_draw, (np.asarray(7, "uint64"),)),
        "while loop": Row(lambda: own_walk, lambda: other_walk, (rng.normal(size=1000),)),
        "sort and cumulative sum": same(
            lambda lib: lambda x: lib.cumsum(lib.sort(x, axis=1), axis=1), rng.normal(size=(64, 256))
        ),
    }  # fmt: skip


def wait(x: Any) -> Any:
    """Wait for a result of either."""
    leaves = tr.tree_leaves(x)
    if isinstance(leaves[0], jax.Array):
        return jax.block_until_ready(x)
    tr.synchronize_all()
    return x


def contestants(row: Row) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The compiled functions, with arguments on the device."""
    own = tr.compile(row.own(), backend="xla")
    return [
        (own, tuple([tr.asarray(a).to_device(DEVICE) for a in row.arguments])),
        (jax.jit(row.other()), tuple([jnp.asarray(a) for a in row.arguments])),
    ]


def forget() -> None:
    """Empty the caches of both."""
    for cache in caches():
        cache.clear()
    jax.clear_caches()


def first_calls(row: Row, rounds: int, clock: Callable[[], float]) -> list[list[float]]:
    """Seconds that first calls take, of both."""
    seconds: list[list[float]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            forget()
            f, arguments = contestants(row)[which]
            start = clock()
            wait(f(*arguments))
            seconds[which].append(clock() - start)
    return seconds


def calls(row: Row, rounds: int, clock: Callable[[], float]) -> list[list[float]]:
    """Seconds that calls take, of both; results are compared."""
    both = contestants(row)
    own, other = (tr.tree_leaves(f(*arguments)) for f, arguments in both)
    for a, b in zip([x.numpy() for x in own], map(np.asarray, other), strict=True):
        assert a.shape == b.shape
        if row.own() is not own_draw:  # vectors of svd have no sign
            np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-8, atol=1e-8)
    for f, arguments in both:  # the second call takes the fast path
        wait(f(*arguments))
    start = clock()
    wait(both[1][0](*both[1][1]))
    repeats = max(1, min(2000, int(SEARCH / rounds / max(clock() - start, 1e-7))))
    seconds: list[list[float]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            f, arguments = both[which]
            start = clock()
            for _ in range(repeats):
                result = f(*arguments)
            wait(result)
            seconds[which].append((clock() - start) / repeats)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose name has one of these texts, with commas between")
    parser.add_argument("--busy", action="store_true", help="the least processor time of all threads")
    parser.add_argument("--first", action="store_true", help="first calls only")
    parser.add_argument("--calls", action="store_true", help="calls only")
    given = parser.parse_args()
    clock = time.process_time if given.busy else time.perf_counter
    of_all = min if given.busy else statistics.median
    print(f"{'':26}{'call [us]':>12}{'jax.jit':>12}{'ratio':>8}{'first [ms]':>14}{'jax.jit':>10}{'ratio':>8}")
    with jax.enable_x64(True):
        for name, row in rows().items():
            if not any(part in name for part in given.only.split(",")):
                continue
            text = f"{name:26}"
            if not given.first:
                own, other = (1e6 * of_all(s) for s in calls(row, given.rounds, clock))
                text += f"{own:12.1f}{other:12.1f}{own / other:8.2f}"
            if not given.calls:
                own, other = (1e3 * of_all(s) for s in first_calls(row, max(3, given.rounds // 3), clock))
                text += f"{own:14.1f}{other:10.1f}{own / other:8.2f}"
            print(text, flush=True)


if __name__ == "__main__":
    main()
