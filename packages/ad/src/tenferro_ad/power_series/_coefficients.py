"""`Coefficients`: the coefficients of a power series, each computed when it is first asked for.

Coefficient k of a result needs those of the operands up to k only. That is enough to solve ``y' = J(x, y) x'``: the
right side is computed from coefficients of y that are there already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

Term = Any
"""A coefficient: a value, or ``None`` for zero."""

ENDLESS: Final = sys.maxsize
"""Order to which the coefficients of a constant are known."""


class Source(Protocol):
    """What finds more coefficients: appends one or more to the terms that it was made with.

    It refers to lists of terms, never to `Coefficients`, so that nothing here needs the collector of cycles.
    """

    def advance(self) -> None: ...


class Coefficients:
    """``x[k]`` is coefficient k of a series, ``f^(k)(0) / k!``; ``None`` where it is zero.

    Attributes:
        terms: those that are there; all others are zero unless there is a source.
        order: the order to which they are known where there is no source.
        source: finds more of them; ``None`` where nothing is left to compute.
    """

    __slots__ = ("order", "source", "terms")

    def __init__(self, terms: list[Term], order: int = ENDLESS, source: Source | None = None) -> None:
        self.terms, self.order, self.source = terms, order, source

    def __getitem__(self, k: int) -> Term:
        terms = self.terms
        while len(terms) <= k:
            if self.source is None:
                return None
            self.source.advance()
        return terms[k]

    @property
    def reach(self) -> int:
        """The order to which coefficients are known without computing any."""
        return self.order if self.source is None else len(self.terms) - 1

    def forced(self, order: int) -> Coefficients:
        """These coefficients up to an order, all of them computed."""
        terms = [self[k] for k in range(order + 1)]
        while len(terms) > 1 and terms[-1] is None:
            terms.pop()
        return Coefficients(terms, order)


class Mapped(Coefficients):
    """Coefficient ``k`` is ``f(k, x[k + shift])``."""

    __slots__ = ("f", "shift", "x")

    def __init__(self, x: Coefficients, f: Callable[[int, Any], Any], shift: int = 0) -> None:
        super().__init__([])
        self.x, self.f, self.shift = x, f, shift

    def __getitem__(self, k: int) -> Term:
        terms = self.terms
        while len(terms) <= k:
            n = len(terms)
            x = self.x[n + self.shift]
            terms.append(None if x is None else self.f(n, x))
        return terms[k]

    @property
    def reach(self) -> int:
        """The order to which coefficients are known without computing any but these."""
        return self.x.reach - self.shift


def constant(value: Any) -> Coefficients:
    """The series of a constant."""
    return Coefficients([value])


def derivative(x: Coefficients) -> Coefficients:
    """The series of the derivative; its value is ``None`` where the slope at 0 is."""
    return Mapped(x, lambda k, term: term if k == 0 else term * (k + 1), shift=1)


class _Stream:
    """A recurrence, which appends to the terms of its outputs."""

    __slots__ = ("columns", "made", "single")

    def __init__(self, made: Iterator[Any], columns: list[list[Term]], single: bool) -> None:
        self.made, self.columns, self.single = made, columns, single

    def advance(self) -> None:
        """Append one coefficient to each output."""
        found = next(self.made)
        for column, term in zip(self.columns, (found,) if self.single else found, strict=True):
            column.append(term)


def streamed(made: Iterator[Any], count: int | None) -> list[Coefficients]:
    """The outputs of a recurrence, a generator of coefficients, or of tuples of them for `count` outputs."""
    columns: list[list[Term]] = [[] for _ in range(count or 1)]
    source = _Stream(made, columns, count is None)
    return [Coefficients(column, source=source) for column in columns]


def total(terms: Iterable[Term]) -> Term:
    """The sum of coefficients."""
    found = None
    for term in terms:
        if term is not None:
            found = term if found is None else found + term
    return found


def cauchy(times: Callable[[Any, Any], Any], x: Any, y: Any, k: int, start: int = 0, stop: int | None = None) -> Term:
    """Coefficient k of a product, the sum of ``times(x[j], y[k - j])`` for j from `start` up to `stop`, or to k."""
    pairs = [(x[j], y[k - j]) for j in range(start, k + 1 if stop is None else stop)]
    return total([times(a, b) for a, b in pairs if a is not None and b is not None])


def difference(x: Term, y: Term) -> Term:
    """``x - y``."""
    return x if y is None else -y if x is None else x - y


def over(x: Term, k: int) -> Term:
    """``x / k``."""
    return x if x is None or k == 1 else x / k
