"""`Coefficients`: the coefficients of a power series, computed on demand.

Coefficient k of a result depends only on coefficients of the operands up to k. That suffices to solve
``y' = J(x, y) x'``, whose right-hand side reads coefficients of y that are already known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

Term = Any
"""A coefficient: a value, or ``None`` for zero."""

UNBOUNDED_ORDER: Final = sys.maxsize
"""Order to which the coefficients of a constant are known."""


class Source(Protocol):
    """Computes further coefficients: appends one or more to the lists of terms that it was created with.

    It refers to lists of terms, never to `Coefficients`, so that there are no reference cycles.
    """

    def advance(self) -> None: ...


class Coefficients:
    """The coefficients of a series: ``x[k]`` is ``f^(k)(0) / k!``, ``None`` if it is zero.

    Attributes:
        terms: the known coefficients; without a source, all others are zero.
        order: the order to which they are known if there is no source.
        source: computes further coefficients; ``None`` if there is nothing left to compute.
    """

    __slots__ = ("__weakref__", "order", "source", "terms")

    def __init__(self, terms: list[Term], order: int = UNBOUNDED_ORDER, source: Source | None = None) -> None:
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
        """These coefficients, all computed up to an order."""
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
        """The order to which coefficients are known without computing any of `x`."""
        return self.x.reach - self.shift


def constant(value: Any) -> Coefficients:
    """The series of a constant."""
    return Coefficients([value])


def derivative(x: Coefficients) -> Coefficients:
    """The series of the derivative; its coefficient 0 is ``None`` if the derivative at 0 is zero."""
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
    """The outputs of a recurrence: a generator of coefficients, or of tuples of coefficients for `count` outputs."""
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
    """Coefficient k of a product: the sum of ``times(x[j], y[k - j])`` over `start` <= j < `stop`, by default to k."""
    pairs = [(x[j], y[k - j]) for j in range(start, k + 1 if stop is None else stop)]
    return total([times(a, b) for a, b in pairs if a is not None and b is not None])


def difference(x: Term, y: Term) -> Term:
    """``x - y``."""
    return x if y is None else -y if x is None else x - y


def over(x: Term, k: int) -> Term:
    """``x / k``."""
    return x if x is None or k == 1 else x / k
