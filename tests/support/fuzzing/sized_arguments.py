"""Arguments of the area `sizes`: arrays of given extents, between numbers that nothing may read or write."""

import math
import random
from typing import Any

import numpy as np

from fuzzing.area import Case, Mismatch
from fuzzing.values import pool

MARGIN = 4096
"""Elements before and after each argument."""

UNTOUCHED = {"f": 7.7e30, "i": -(10**6)}
"""Their values by kind of dtype; a result that depends on one is far off."""

SIZES = (
    (4, 3), (3, 3), (2, 5), (5, 2), (1, 3), (3, 1), (1, 1), (2, 2), (0, 3), (3, 0), (0, 0), (0, 1), (7, 4), (17, 9),
)  # fmt: skip
EMPTY = ((0, 3), (3, 0), (0, 2), (0, 0))
SHORT = ((1, 3), (3, 1), (1, 1), (4, 3))
HUGE = ((0, 100_000), (100_000, 0), (0, 3_000_000))
"""Extents n and m."""

MOST = 300_000
"""Elements of an array; sizes that lead to more are left out."""

MOST_STEPS = 100_000
"""Extents in programs with loops, whose steps eager calls run in Python."""

SHAPES = (("n", "m"),) * 3 + (("n",),) * 2 + (("m",), ("m", "n"), ("n", "n"))


def draw_inputs(rng: random.Random) -> list[dict[str, Any]]:
    """Data, then one or two integers, and often a vector of indices."""
    kinds: list[tuple[str, tuple[str, ...]]] = [("data", rng.choice(SHAPES)) for _ in range(rng.randint(1, 3))]
    kinds += [(rng.choice(("below n", "below n", "below m", "number")), ()) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.4:
        kinds.append(("indices", (rng.choice(("n", "m", "3")),)))
    return [
        {"name": f"v{k}", "kind": kind, "shape": list(shape), "seed": rng.randrange(1 << 16)}
        for k, (kind, shape) in enumerate(kinds)
    ]


def draw_sizes(rng: random.Random) -> list[list[int]]:
    """Three to seven pairs of extents, an empty one among them."""
    chosen = [*rng.sample(SIZES, rng.randint(2, 4)), rng.choice(EMPTY), rng.choice(SHORT)]
    chosen += [rng.choice(HUGE)] * (rng.random() < 0.15)
    rng.shuffle(chosen)
    return [list(s) for s in dict.fromkeys(chosen)]


def extent(text: str, n: int, m: int) -> int:
    """The value of an extent."""
    return int(eval(text, {"n": n, "m": m, "max": max, "min": min}))


def extents(shape: list[str], n: int, m: int) -> list[int]:
    """The values of extents."""
    return [extent(d, n, m) for d in shape]


def fitting(case: Case) -> list[list[int]]:
    """The sizes at which no array is too large."""
    shapes = [x["shape"] for x in (*case["inputs"], *case["lines"])]
    loops = any(loop in x["text"] for x in case["lines"] for loop in ("tr.scan(", "_loop("))
    sizes = [s for s in case["sizes"] if not loops or max(s) <= MOST_STEPS]
    return [s for s in sizes if all(math.prod(extents(d, *s)) <= MOST for d in shapes)]


class Arguments:
    """The arguments of a call, and whether something wrote where it must not.

    Args:
        case: the case.
        sizes: values of n and m.
    """

    def __init__(self, case: Case, sizes: list[int]) -> None:
        self.sizes = sizes
        self._wide: list[tuple[Any, Any]] = []
        self._raws: list[Any] = []
        for x in case["inputs"]:
            made = _elements(x, case, *sizes)
            if made.ndim:
                wide = np.full(made.size + 2 * MARGIN, UNTOUCHED[made.dtype.kind], made.dtype)
                inside = wide[MARGIN : MARGIN + made.size].reshape(made.shape)
                inside[...] = made
                self._wide.append((wide, wide.copy()))
                made = inside
            self._raws.append(made)

    def arrays(self) -> list[Any]:
        """The arguments of a library of C."""
        return self._raws

    def tensors(self, owned: bool = False) -> list[Any]:
        """The arguments of one call; `owned` ones may be donated, and lie elsewhere."""
        import tenferro_runtime as tr

        return [tr.asarray(x, copy=owned) for x in self._raws]

    def check(self, what: str) -> None:
        """Require that all arguments and what lies around them are as before."""
        for wide, before in self._wide:
            if wide.tobytes() != before.tobytes():
                at, size = int(np.argmax(wide != before)) - MARGIN, wide.size - 2 * MARGIN
                raise Mismatch(f"{what}: an argument of {size} elements, or what is around it, was written at {at}")


def _elements(x: dict[str, Any], case: Case, n: int, m: int) -> Any:
    seed, kind = x["seed"], x["kind"]
    if kind == "data":
        numbers = pool(case["dtype"], "plain")
        shape = [2] * (case["way"] == "lanes") + extents(x["shape"], n, m)
        return numbers[(seed + np.arange(math.prod(shape)) * (1 + seed % 97)) % len(numbers)].reshape(shape)
    if kind == "indices":
        return (seed + 3 * np.arange(extent(x["shape"][0], n, m))) % max(1, min(n, 7))
    most = {"below n": min(n, 6), "below m": min(m, 6), "number": 5}[kind]
    return np.asarray(seed % max(1, most))
