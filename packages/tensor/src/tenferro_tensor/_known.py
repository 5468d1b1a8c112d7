"""Facts about integer values with unknown elements: bounds, and linear forms in other values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from tenferro_tensor_core import DimLike, decide


class Interval(NamedTuple):
    """Inclusive bounds of all elements; ``None`` for an unbounded side."""

    low: DimLike | None
    high: DimLike | None

    def within(self, low: DimLike, high: DimLike) -> bool:
        """Whether all elements are known to be in a range.

        Args:
            low: smallest allowed value.
            high: largest allowed value.

        Returns:
            True if known.
        """
        return self.at_least(low) and self.high is not None and decide(self.high, "<=", high) is True

    def at_least(self, low: DimLike) -> bool:
        """Whether all elements are known to be at least a value.

        Args:
            low: the value.

        Returns:
            True if known.
        """
        return self.low is not None and decide(self.low, ">=", low) is True


class LinearForm(NamedTuple):
    """A constant plus nonzero multiples of variables."""

    terms: Mapping[Hashable, DimLike]
    constant: DimLike

    def plus(self, other: LinearForm) -> LinearForm:
        """Add another form.

        Args:
            other: the other form.

        Returns:
            The sum.
        """
        terms = dict(self.terms)
        for key, factor in other.terms.items():
            total = terms.pop(key, 0) + factor
            if total.__class__ is not int or total:
                terms[key] = total
        return LinearForm(terms, self.constant + other.constant)

    def times(self, factor: DimLike) -> LinearForm:
        """Multiply by a factor.

        Args:
            factor: the factor.

        Returns:
            The product.
        """
        if factor.__class__ is int and not factor:
            return LinearForm({}, 0)
        return LinearForm({key: n * factor for key, n in self.terms.items()}, self.constant * factor)

    def minus(self, other: LinearForm) -> DimLike | None:
        """Subtract another form.

        Args:
            other: the other form.

        Returns:
            The difference if it does not depend on variables, else None.
        """
        terms, constant = self.plus(other.times(-1))
        return None if terms else constant
