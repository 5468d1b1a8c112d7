"""Random numbers beside NumPy's Generator and jax.random: microseconds of a call, of few and of many numbers.

    python3 dev bench random_numbers [--only TEXT ...] [--size 8 10000000] [--rounds N]

Generators draw with the methods that they share; `jax.random` in compiled functions of a key, without the time of
splitting it. The contestants take turns; the table shows medians, and the ratio of NumPy to tenferro.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy as np  # noqa: E402 - after the thread settings
from random_draws import GENERATORS, KEYS  # noqa: E402
from turns import medians, warm  # noqa: E402

import tenferro_runtime as tr  # noqa: E402

try:
    import jax
except ModuleNotFoundError:
    jax = None


def contestants(name: str, n: int) -> dict[str, Callable[[], Any]]:
    """A call of each library."""
    ours, theirs, draw = tr.random.default_rng(0), np.random.default_rng(0), GENERATORS[name]
    calls: dict[str, Callable[[], Any]] = {"tenferro": lambda: draw(ours, n), "NumPy": lambda: draw(theirs, n)}
    if jax is not None and name in KEYS:
        key, compiled = jax.random.key(0), jax.jit(lambda k: KEYS[name](jax.random, k, n))
        calls["jax.random"] = lambda: compiled(key).block_until_ready()
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    parser.add_argument("--size", nargs="*", type=int, default=[8, 10_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{'':18}{'numbers':>10}{'tenferro':>12}{'NumPy':>12}{'jax.random':>12}   NumPy / tenferro")
    for n in given.size:
        for name in GENERATORS:
            if given.only and not any(text in name for text in given.only):
                continue
            calls = contestants(name, n)
            for call in calls.values():
                call() if n > 1_000_000 else warm(call)
            found = medians(calls, given.rounds)
            shown = "".join(
                f"{1e6 * found[c]:12.1f}" if c in found else f"{'':12}" for c in ("tenferro", "NumPy", "jax.random")
            )
            print(f"{name:18}{n:10}{shown}   {found['NumPy'] / found['tenferro']:.2f}", flush=True)


if __name__ == "__main__":
    main()
