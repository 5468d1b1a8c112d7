"""Reference results of contractions, by the definition as a loop, and random equations."""

import itertools
import random
from typing import Any, NamedTuple

import numpy as np

from random_contractions import array

EXACT = ("bool", "int32", "int64")
INEXACT = ("float32", "float64", "complex64", "complex128")


def by_loops(subscripts: str, *arrays: Any) -> Any:
    """The definition: a sum over all values of all labels."""
    left, right = subscripts.split("->")
    terms = left.split(",")
    extent: dict[str, int] = {}
    for term, a in zip(terms, arrays, strict=True):
        for x, d in zip(term, a.shape, strict=True):
            extent[x] = d if extent.get(x, 1) == 1 else extent[x]
    labels = list(extent)
    out = np.zeros([extent[x] for x in right], np.result_type(*arrays))
    for values in itertools.product(*[range(extent[x]) for x in labels]):
        at = dict(zip(labels, values, strict=True))
        product = 1
        for term, a in zip(terms, arrays, strict=True):
            product = product * a[tuple(at[x] if d != 1 else 0 for x, d in zip(term, a.shape, strict=True))]
        out[tuple(at[x] for x in right)] += product
    return out


def intermediates(inputs: Any, steps: Any) -> tuple[int, ...]:
    """Numbers of the values of all steps but the last."""
    return tuple(range(len(inputs), len(inputs) + len(steps) - 1))


class Equation(NamedTuple):
    """Subscripts and arrays for them."""

    subscripts: str
    arrays: list[Any]


def random_equation(seed: int, dtypes: tuple[str, ...], most: int = 3) -> Equation:
    """Up to four operands of up to four axes: diagonals, hyper-edges, extents 0 and 1, any strides, mixed dtypes."""
    rng = random.Random(seed)
    labels = rng.sample("abcdefαβ", rng.randint(1, 5))
    extent = {x: rng.choice([*range(1, most + 1)] * 8 + [0]) for x in labels}
    terms = ["".join(rng.choices(labels, k=rng.randint(0, 4))) for _ in range(rng.randint(1, 4))]
    used = sorted({x for t in terms for x in t})
    out = "".join(rng.choices(used, k=rng.randint(0, 3))) if used else ""
    same = rng.random() < 0.7
    dtype = rng.choice(dtypes)
    arrays = []
    for term in terms:
        own = np.dtype(dtype if same else rng.choice(dtypes))
        shape = [1 if rng.random() < 0.05 and term.count(x) == 1 else extent[x] for x in term]
        arrays.append(array(rng, shape, "int64") > 0 if own.kind == "b" else array(rng, shape, own))
    return Equation(f"{','.join(terms)}->{out}", arrays)
