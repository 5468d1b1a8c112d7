"""Programs of element-wise work, broadcasts and reductions beside JAX and PyTorch, from 100 to 10 000 000 elements.

    python3 dev run benchmarks/fused_programs.py [NAME ...] [--sizes N ...] [--seconds S]

As in `programs.py` the contestants run in turns in one thread each; medians, and ratios above 1 mean that tenferro is
faster. Every program is checked against NumPy first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from programs import Bench, peers, program, theirs  # sets the number of threads

import tenferro_runtime as tr

WIDTH = 100
"""Elements of a row."""

Shapes = list[tuple[int, ...]]


class Case(NamedTuple):
    """A program of a namespace, and the shapes of its arguments for a number of elements."""

    make: Callable[[Any], Callable[..., Any]]
    shapes: Callable[[int], Shapes]


def over(xp: Any, f: str, x: Any, axis: int, keep: bool = False) -> Any:
    """A reduction; PyTorch names axes otherwise."""
    if hasattr(xp, "no_grad"):
        return getattr(xp, {"max": "amax", "min": "amin"}.get(f, f))(x, dim=axis, keepdim=keep)
    return getattr(xp, f)(x, axis=axis, keepdims=keep)


def softmax(xp: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        e = xp.exp(x - over(xp, "max", x, 1, True))
        return e / over(xp, "sum", e, 1, True)

    return f


def normalised(axis: int) -> Callable[[Any], Callable[..., Any]]:
    def make(xp: Any) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            d = x - over(xp, "mean", x, axis, True)
            return d / xp.sqrt(over(xp, "mean", d * d, axis, True) + 1e-5)

        return f

    return make


def log_of_sums(xp: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        most = over(xp, "max", x, 1, True)
        return xp.log(over(xp, "sum", xp.exp(x - most), 1)) + most[:, 0]

    return f


def rows(n: int) -> tuple[int, int]:
    """A matrix of that many elements."""
    return max(1, n // WIDTH), min(n, WIDTH)


CASES = {
    "softmax of rows": Case(softmax, lambda n: [rows(n)]),
    "logarithm of sums": Case(log_of_sums, lambda n: [rows(n)]),
    "normalised rows": Case(normalised(1), lambda n: [rows(n)]),
    "normalised columns": Case(normalised(0), lambda n: [rows(n)]),
    "row and column": Case(
        lambda xp: lambda x, r, c: xp.tanh(x * r + c), lambda n: [rows(n), rows(n)[1:], (rows(n)[0], 1)]
    ),
    "outer exponentials": Case(
        lambda xp: lambda r, c: xp.exp(-(r - c) * (r - c)), lambda n: [rows(n)[1:], (rows(n)[0], 1)]
    ),
    "several results": Case(lambda xp: lambda x, y: (xp.sin(x) * y, xp.cos(x) * y, x + y), lambda n: [(n,)] * 2),
    "arguments of maxima": Case(lambda xp: lambda x: xp.argmax(x * x, 1), lambda n: [rows(n)]),
    "sum beside a row": Case(
        lambda xp: lambda x, r: xp.sum(xp.exp(-x * x) * r + xp.tanh(x) * 0.5), lambda n: [rows(n), rows(n)[1:]]
    ),
    "sums of columns": Case(lambda xp: lambda x: over(xp, "sum", xp.exp(-x * x), 0), lambda n: [rows(n)]),
    "sums of rows": Case(lambda xp: lambda x: over(xp, "sum", xp.exp(-x * x), 1), lambda n: [rows(n)]),
    "extremes of columns": Case(
        lambda xp: lambda x: (over(xp, "max", x, 0), over(xp, "min", x, 0)), lambda n: [rows(n)]
    ),
    "a*x+y": Case(lambda xp: lambda x, y: 2.0 * x + y, lambda n: [(n,)] * 2),
    "selection": Case(lambda xp: lambda x, y: xp.where(x > 0, xp.exp(x) * y, 0.0), lambda n: [(n,)] * 2),
    "a matrix and its transpose": Case(lambda xp: lambda x: (x + x.T) * 0.5, lambda n: [(round(n**0.5),) * 2]),
    "distances": Case(
        lambda xp: lambda x, y: over(xp, "sum", (x - y) * (x - y), 2),
        lambda n: [(max(2, round((n / 4) ** 0.5)), 1, 4), (1, max(2, round((n / 4) ** 0.5)), 4)],
    ),
}


def agree(found: Any, wanted: Any) -> None:
    """Fail where results differ by more than rounding."""
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for x, y in pairs:
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-9, atol=1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CASES)}; all of them by default")
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e2, 1e3, 1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--seconds", type=float, default=0.5, help="time for one line")
    options = parser.parse_args()
    bench = Bench(options.seconds, peers())
    print(f"tenferro, against {', '.join(bench.peers) or 'no other library'}; ratio: their time over ours")
    for name in options.names or CASES:
        case = CASES[name]
        for n in map(int, options.sizes):
            arrays = [bench.rng.standard_normal(shape) for shape in case.shapes(n)]
            args = [tr.asarray(x) for x in arrays]
            ours = program(case.make(tr), *args)
            agree(ours(*args), case.make(np)(*arrays))
            calls = {"tenferro": lambda ours=ours, args=args: ours(*args)}
            bench.row(f"{name}, {n} elements", calls | theirs(bench, case.make, arrays))


if __name__ == "__main__":
    main()
