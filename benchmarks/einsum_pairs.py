"""Fifty generated contractions of two operands: tenferro beside NumPy, PyTorch and JAX.

    python3 dev run benchmarks/einsum_pairs.py [--quick] [--dtype D] [--rounds N] [--threads N] [--only TEXT] [--busy]

Ten of each kind, of all sizes from microseconds to tens of milliseconds, with fixed seeds: the axes of operands and
result in any order ("interleaved"), groups of axes in any order ("transposed"), one side of few elements ("thin"),
shared axes in any place ("batched"), and up to 24 axes of extent 2 ("many"). ``--seed`` makes fifty others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from contestants import Instance, Table, parser, prepare

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
Groups = tuple[list[int], list[int], list[int], list[int]]
"""Extents of the axes of batch, rows, columns and sum."""


def extents(rng: random.Random, size: int, axes: int) -> list[int]:
    """About `size` elements in so many axes."""
    found = []
    for left in range(axes, 0, -1):
        mean = max(2.0, (size / math.prod(found)) ** (1 / left))
        found.append(max(2, round(mean * (rng.uniform(0.6, 1.6) if left > 1 else 1))))
    return found


def between(rng: random.Random, low: float, high: float) -> int:
    """A size; every order of magnitude is as likely."""
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def interleaved(rng: random.Random) -> Groups:
    """Three sides of 8 to 700 elements."""
    sides = [extents(rng, between(rng, 8, 700), rng.randint(2, 4)) for _ in range(3)]
    return [], sides[0], sides[1], sides[2]


def transposed(rng: random.Random) -> Groups:
    """Three sides of 8 to 700 elements, of one or two axes."""
    sides = [extents(rng, between(rng, 8, 700), rng.randint(1, 2)) for _ in range(3)]
    return [], sides[0], sides[1], sides[2]


def thin(rng: random.Random) -> Groups:
    """One or two sides of 2 to 16 elements, the others long."""
    few = rng.randint(1, 2)
    sizes = [rng.randint(2, 16) for _ in range(few)]
    sizes += [between(rng, 50, 2000) if few == 1 else between(rng, 500, 500_000) for _ in range(3 - few)]
    rng.shuffle(sizes)
    sides = [extents(rng, n, rng.randint(1, 2 if n < 20 else 3)) for n in sizes]
    return [], sides[0], sides[1], sides[2]


def batched(rng: random.Random) -> Groups:
    """Many small products."""
    sides = [extents(rng, between(rng, 4, 100), rng.randint(1, 2)) for _ in range(3)]
    return extents(rng, between(rng, 4, 1000), rng.randint(1, 2)), sides[0], sides[1], sides[2]


def many(rng: random.Random) -> Groups:
    """Axes of extent 2: a large operand of 12 to 24 axes and a small one, or two of middle size."""
    if rng.random() < 0.7:
        k = rng.randint(1, 8)
        return [], [2] * (rng.randint(12, 24) - k), [2] * rng.randint(1, 4), [2] * k
    return [2] * rng.randint(0, 3), *([2] * rng.randint(5, 9) for _ in range(3))  # type: ignore[return-value]


KINDS: dict[str, Callable[[random.Random], Groups]] = {
    "interleaved": interleaved, "transposed": transposed, "thin": thin, "batched": batched, "many": many,
}  # fmt: skip


def instance(kind: str, number: int, seed: int) -> Instance:
    """One contraction."""
    rng = random.Random(f"{kind} {number} {seed}")
    groups = KINDS[kind](rng)
    letters = iter(rng.sample(LETTERS, sum(map(len, groups))))
    named = [[(next(letters), n) for n in group] for group in groups]
    batch, rows, columns, summed = named

    def placed(sides: list[list[tuple[str, int]]]) -> list[tuple[str, int]]:
        rng.shuffle(sides)
        axes = [axis for side in sides for axis in side]
        if kind in ("interleaved", "batched", "many") or (kind == "thin" and rng.random() < 0.5):
            rng.shuffle(axes)
        return axes

    terms = [placed([batch, rows, summed]), placed([batch, columns, summed]), placed([batch, rows, columns])]
    left, right, result = ("".join(name for name, _ in axes) for axes in terms)
    shapes = [tuple(n for _, n in axes) for axes in terms[:2]]
    sizes = "x".join(str(math.prod(n for _, n in group)) for group in named)
    return Instance(f"{kind} {number}, {sizes}", f"{left},{right}->{result}", tuple(shapes))


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    prepare(chosen)
    every = [instance(kind, number, chosen.seed) for kind in KINDS for number in range(10)]
    Table(chosen).run([one for one in every if chosen.only in one.name])
