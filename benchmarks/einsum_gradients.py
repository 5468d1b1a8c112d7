"""Gradients of contractions of many operands beside the contraction: inner products of matrix product states.

    python3 dev run benchmarks/einsum_gradients.py [--rounds N]

Least processor time of the calling thread in milliseconds, warm: the contraction, recorded; the pullback, with the
gradients of all operands; value and gradients together, eager and compiled; and how many times as long as the
contraction the pullback takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

CASES = ((500, 3, "float64"), (500, 3, "complex128"), (500, 16, "float64"), (100, 64, "float64"))
"""Sites, bond dimension, dtype."""


def states(count: int, bond: int, dtype: str) -> tuple[list[Any], list[list[Any]]]:
    """Tensors of two states, and their labels."""
    import numpy as np

    import tenferro_runtime as tr

    rng = np.random.default_rng(0)
    arrays, terms = [], []
    for side in ("ket", "bra"):
        for i in range(count):
            shape = (1 if i == 0 else bond, 2, 1 if i == count - 1 else bond)
            x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
            arrays.append(tr.asarray((x / (2 * bond) ** 0.5).astype(dtype)))
            terms.append([(side, i), i, (side, i + 1)])
    return arrays, terms


def zipped(count: int) -> list[tuple[int, ...]]:
    """The path that contracts two states of so many sites from the left."""
    pairs = [(0, count)]
    for i in range(1, count):
        pairs += [(2 * count + 2 * i - 2, i), (2 * count + 2 * i - 1, count + i)]
    live, path = list(range(2 * count)), []
    for number, pair in enumerate(pairs):
        path.append(tuple(sorted(live.index(v) for v in pair)))
        live = [*[v for v in live if v not in pair], 2 * count + number]
    return path


def least(f: Callable[[], Any], rounds: int) -> float:
    """Milliseconds."""
    for _ in range(4):
        f()
    found = []
    for _ in range(rounds):
        start = time.thread_time()
        f()
        found.append(time.thread_time() - start)
    return 1e3 * min(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds

    import tenferro_runtime as tr
    from tenferro_ad import value_and_grad, vjp
    from tenferro_einsum import plan

    print(f"{'sites, bond':<24}{'forward':>9}{'recorded':>9}{'pullback':>9}{'both':>9}{'compiled':>9}{'times':>8}")
    for count, bond, dtype in CASES:
        arrays, terms = states(count, bond, dtype)
        contraction = plan(*[v for pair in zip(arrays, terms, strict=True) for v in pair], [], optimize=zipped(count))
        loss = lambda *xs, p=contraction: tr.real(p(*xs)) if xs[0].dtype.kind == "c" else p(*xs)
        both = value_and_grad(loss, argnums=tuple(range(2 * count)))
        compiled = tr.compile(both)
        value, pull = vjp(contraction, *arrays)
        seed = tr.ones((), dtype=value.dtype)
        times = [
            least(call, rounds)
            for call in (
                partial(contraction, *arrays), partial(vjp, contraction, *arrays), partial(pull, seed),
                partial(both, *arrays), partial(compiled, *arrays),
            )
        ]  # fmt: skip
        print(f"{f'{count}, {bond} {dtype}':<24}" + "".join(f"{t:9.2f}" for t in times) + f"{times[2] / times[0]:8.1f}")


if __name__ == "__main__":
    main()
