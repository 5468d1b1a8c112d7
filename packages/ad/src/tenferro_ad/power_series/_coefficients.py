"""`Coefficients`: the coefficients of a power series, each computed when it is first asked for.

Coefficient k of a result needs those of the operands up to k only. That is enough to solve ``y' = J(x, y) x'``: the
right side is computed from coefficients of y that are there already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

Term = Any
"""A coefficient: a value, or ``None`` for zero."""

ENDLESS: Final = sys.maxsize
"""Order to which the coefficients of a constant are known."""


class Coefficients:
    """``x[k]`` is coefficient k of a series, ``f^(k)(0) / k!``; ``None`` where it is zero.

    Attributes:
        terms: those that are there; all others are zero unless `advance` computes them.
        order: the order to which they are known where nothing computes more.
        advance: appends one or more to `terms`; ``None`` where nothing is left to compute.
    """

    __slots__ = ("advance", "order", "terms")

    def __init__(self, terms: list[Term], order: int = ENDLESS, advance: Callable[[], None] | None = None) -> None:
        self.terms, self.order, self.advance = terms, order, advance

    def __getitem__(self, k: int) -> Term:
        terms = self.terms
        while len(terms) <= k:
            if self.advance is None:
                return None
            self.advance()
        return terms[k]

    @property
    def reach(self) -> int:
        """The order to which coefficients are known without computing any."""
        return self.order if self.advance is None else len(self.terms) - 1

    def forced(self, order: int) -> Coefficients:
        """These coefficients up to an order, all of them computed."""
        terms = [self[k] for k in range(order + 1)]
        while len(terms) > 1 and terms[-1] is None:
            terms.pop()
        return Coefficients(terms, order)


class Mapped(Coefficients):
    """Coefficient ``k`` is ``f(k, x[k + shift])``."""

    __slots__ = ("f", "shift", "source")

    def __init__(self, source: Coefficients, f: Callable[[int, Any], Any], shift: int = 0) -> None:
        super().__init__([], advance=self._next)
        self.source, self.f, self.shift = source, f, shift

    def _next(self) -> None:
        k = len(self.terms)
        x = self.source[k + self.shift]
        self.terms.append(None if x is None else self.f(k, x))

    @property
    def reach(self) -> int:
        """The order to which coefficients are known without computing any but these."""
        return self.source.reach - self.shift


def constant(value: Any) -> Coefficients:
    """The series of a constant."""
    return Coefficients([value])


def derivative(x: Coefficients) -> Coefficients:
    """The series of the derivative; its value is ``None`` where the slope at 0 is."""
    return Mapped(x, lambda k, term: term if k == 0 else term * (k + 1), shift=1)


def streamed(found: Iterator[Any], count: int | None) -> list[Coefficients]:
    """The outputs of a recurrence, a generator of coefficients, or of tuples of them for `count` outputs."""
    outs = [Coefficients([]) for _ in range(count or 1)]

    def advance() -> None:
        made = next(found)
        for out, term in zip(outs, (made,) if count is None else made, strict=True):
            out.terms.append(term)

    for out in outs:
        out.advance = advance
    return outs


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
