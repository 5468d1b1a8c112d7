"""Programs of element-wise work, broadcasts and reductions, written for the namespace of any array library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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


def thirty(xp: Any) -> Callable[..., Any]:
    """35 element-wise operations, 13 of them transcendental."""

    def f(x: Any, y: Any) -> Any:
        a = xp.tanh(x * y + 1.0)
        b = xp.exp(-a) * x
        c = xp.sin(b) + a * b
        d = xp.sqrt(c * c + 1.0)
        e = xp.tanh(d - a) * 0.5 + x
        g = xp.exp(-e * e) + y
        h = xp.cos(g) * a - b
        i = xp.log(h * h + 2.0) + d
        return (xp.tanh(i * 0.3) + xp.sin(g)) * e + xp.exp(-h * h)

    return f


def energy(xp: Any) -> Callable[..., Any]:
    """A sum of element-wise work with a row operand."""
    return lambda x, y: xp.sum(xp.exp(-x * x) * y + xp.tanh(x) * 0.5)
