"""Facts about integers whose elements are not known: bounds, and sums of multiples of others."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from tenferro_tensor_core import DimLike, decide


class Interval(NamedTuple):
    """Bounds of all elements, both included; ``None`` where there is none."""

    low: DimLike | None
    high: DimLike | None

    def within(self, low: DimLike, high: DimLike) -> bool:
        """Whether every element is known to be at least `low` and at most `high`."""
        return self.at_least(low) and self.high is not None and decide(self.high, "<=", high) is True

    def at_least(self, low: DimLike) -> bool:
        """Whether every element is known to be at least `low`."""
        return self.low is not None and decide(self.low, ">=", low) is True


class LinearForm(NamedTuple):
    """A constant plus multiples of variables; no multiple is 0."""

    terms: Mapping[Hashable, DimLike]
    constant: DimLike

    def plus(self, other: LinearForm) -> LinearForm:
        """The sum."""
        terms = dict(self.terms)
        for key, factor in other.terms.items():
            total = terms.pop(key, 0) + factor
            if total.__class__ is not int or total:
                terms[key] = total
        return LinearForm(terms, self.constant + other.constant)

    def times(self, factor: DimLike) -> LinearForm:
        """The multiple."""
        if factor.__class__ is int and not factor:
            return LinearForm({}, 0)
        return LinearForm({key: n * factor for key, n in self.terms.items()}, self.constant * factor)

    def minus(self, other: LinearForm) -> DimLike | None:
        """The difference, where it is the same whatever the variables are."""
        terms, constant = self.plus(other.times(-1))
        return None if terms else constant
