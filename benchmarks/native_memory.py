"""Permutations and large fresh results: tenferro beside memcpy, NumPy and, where importable, PyTorch and JAX.

    python3 dev run benchmarks/native_memory.py [--rounds N] [--only WORD] [--large] [--markdown]

The permutations are those of data/permutations/patterns.json, through the public primitives: a transposed view,
then a reshape that has to copy it. One BLAS thread, one core. The contestants of a row run in turns, in another order
every round; medians of the rounds. `memcpy` is `np.copyto` between contiguous arrays that were written before. PyTorch
is not a dependency; an environment of its own that sees this one by PYTHONPATH will do. `--large` adds the pattern of
2 GB.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contestants import limit

limit(1)
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy as np  # noqa: E402 - after the thread settings

from tenferro_tensor import catalog as c  # noqa: E402
from tenferro_tensor import tensor  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
try:
    import jax
except ImportError:
    jax = None

PATTERNS = Path(__file__).parents[1] / "data" / "permutations" / "patterns.json"
LARGE = 1 << 30

Row = dict[str, Callable[[], Any]]


def source(pattern: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The operand as the view that is to become contiguous.

    Patterns count the first axis as the fastest one, on both sides; here the last one is. Axis ``k`` of a result is
    axis ``perm[k]`` of the operand, as in NumPy and Julia. (The file can be read the other way round, too; one of its
    patterns would then be a plain copy.)
    """
    shape, layout = pattern["shape"], pattern["src_layout"]
    flat = (tensor(np.arange(math.prod(shape)) % 251) * 1.0).data  # a result of tenferro, as operands often are
    if layout["kind"] == "col_major":
        x = flat.reshape(shape, order="F")
    else:
        x = np.lib.stride_tricks.as_strided(flat, shape, [8 * s for s in layout["strides"]])
    return x.transpose(pattern["perm"]).transpose()


def permutation(pattern: dict[str, Any]) -> Row:
    """The contestants of one pattern."""
    x = source(pattern)
    out, plain = np.zeros(x.shape), np.zeros(x.size)
    t = tensor(x)
    size = (x.size,)
    result = c.reshape(t, shape=size)
    np.copyto(out, x)
    assert np.array_equal(result.data, out.reshape(-1)), pattern["id"]
    row: Row = {
        "tenferro": lambda: c.reshape(t, shape=size),
        "memcpy": lambda: np.copyto(plain, out.reshape(-1)),
        "NumPy": lambda: x.reshape(size),
        "NumPy out": lambda: np.copyto(out, x),
    }
    if torch is not None:
        y, z = torch.from_numpy(x), torch.zeros(x.shape, dtype=torch.float64)
        row |= {"PyTorch": lambda: y.clone(memory_format=torch.contiguous_format), "PyTorch out": lambda: z.copy_(y)}
    return row


def product(side: int) -> Row:
    """`x * y` with a fresh result."""
    x, y, out = np.full((side, side), 1.5), np.full((side, side), 0.5), np.zeros((side, side))
    a, b = tensor(x), tensor(y)
    row: Row = {
        "tenferro": lambda: a * b,
        "NumPy": lambda: x * y,
        "NumPy out": lambda: np.multiply(x, y, out),
    }
    if torch is not None:
        s, t, u = map(torch.from_numpy, (x, y, np.zeros_like(x)))
        row |= {"PyTorch": lambda: s * t, "PyTorch out": lambda: torch.mul(s, t, out=u)}
    if jax is not None:
        times, p, q = jax.jit(lambda p, q: p * q), jax.numpy.asarray(x), jax.numpy.asarray(y)
        row["JAX"] = lambda: times(p, q).block_until_ready()
    return row


def measured(row: Row, rounds: int) -> dict[str, float]:
    """Median milliseconds by contestant; a slow one runs less often."""
    times: dict[str, list[float]] = {name: [] for name in row}
    limits = {}
    for name, call in row.items():
        call()
        start = time.perf_counter()
        call()
        limits[name] = 3 if time.perf_counter() - start > 0.3 else rounds
    shuffled = random.Random(0)
    for k in range(rounds):
        for name, call in shuffled.sample(list(row.items()), len(row)):
            if k < limits[name]:
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) * 1e3 for name, t in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    patterns = json.loads(PATTERNS.read_text())["patterns"]
    makers: dict[str, Callable[[], Row]] = {}
    for pattern in patterns:
        large = 8 * math.prod(pattern["shape"]) >= LARGE
        if pattern["id"].startswith("memcpy") or (large and not options.large):
            continue
        makers[pattern["id"]] = lambda pattern=pattern: permutation(pattern)
    for side in (512, 1024, 2048, 4096):
        makers[f"fresh x*y {side}x{side}"] = lambda side=side: product(side)
    names = ("tenferro", "memcpy", "NumPy", "NumPy out", "PyTorch", "PyTorch out", "JAX")
    rule, edge = (" | ", "| ") if options.markdown else ("  ", "")
    print(edge + rule.join([f"{'milliseconds (times tenferro)':40}", *[f"{n:>15}" for n in names]]))
    if options.markdown:
        print("|---|" + "---|" * len(names))
    for name, make in makers.items():
        if options.only in name:
            times = measured(make(), options.rounds)
            cells = [f"{times[n]:.2f} ({times[n] / times['tenferro']:.2f}x)" if n in times else "" for n in names]
            print(edge + rule.join([f"{name:40}", *[f"{cell:>15}" for cell in cells]]), flush=True)


if __name__ == "__main__":
    main()
