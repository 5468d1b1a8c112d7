"""Proofs that memory positions differ, for all values of the sizes.

The difference of two positions is a sum of digits, each a bounded integer times an extent, as in a mixed-radix number.
If the difference is zero, a digit whose step exceeds the sum of all others is zero. If there are unbounded terms as
well, the difference is considered modulo a common divisor of their steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tenferro_tensor_core import Dim, DimLike, always, dim

MAX_LEAST: Final = 16
"""Largest lower bound derived for a size from loops that run at least once."""


@dataclass(frozen=True, slots=True)
class Digit:
    """``step * d`` with ``low <= d <= high`` and a nonnegative `step`."""

    step: DimLike
    low: DimLike
    high: DimLike

    @staticmethod
    def of(step: DimLike, low: DimLike, high: DimLike) -> Digit | None:
        """Make a digit from a step of any sign; None if the sign depends on sizes."""
        if always(step, ">=", 0):
            return Digit(step, low, high)
        return Digit(-step, -high, -low) if always(step, "<=", 0) else None


def never_zero(constant: DimLike, digits: Iterable[Digit], chosen: Digit | None = None) -> bool:
    """Whether ``constant + sum(digits)`` is provably nonzero, with a further digit `chosen` that is itself nonzero."""
    left = list(digits)
    while True:
        low, high = _range(constant, left)
        if chosen is None:
            if always(low, ">", 0) or always(high, "<", 0):
                return True
        else:
            if always(low, ">", -chosen.step) and always(high, "<", chosen.step):
                return True
            with_low, with_high = _range(constant, [*left, chosen])
            if always(with_low, ">", 0) or always(with_high, "<", 0):
                return True
        forced = _forced(constant, left, chosen)
        if forced is None:
            return False
        del left[forced]


def never_multiple(by: int, constant: DimLike, digits: Iterable[Digit], chosen: Digit) -> bool:
    """Whether ``constant + sum(digits) + chosen`` is provably not a multiple of `by`, for nonzero `chosen`."""
    rest = [d for d in digits if not (isinstance(d.step, int) and d.step % by == 0)]
    if not isinstance(constant, int):
        return False
    for start in (constant % by, constant % by - by):
        low, high = _range(start, [*rest, chosen])
        if always(low, ">", -by) and always(high, "<", by) and never_zero(start, rest, chosen):
            return True
    return False


def _forced(constant: DimLike, digits: list[Digit], chosen: Digit | None) -> int | None:
    """Index of a digit that is zero whenever the sum is zero."""
    for k, digit in enumerate(digits):
        others = [*digits[:k], *digits[k + 1 :], *(() if chosen is None else (chosen,))]
        low, high = _range(constant, others)
        if always(low, ">", -digit.step) and always(high, "<", digit.step):
            return k
    return None


def _range(constant: DimLike, digits: Iterable[Digit]) -> tuple[DimLike, DimLike]:
    low = high = constant
    for digit in digits:
        low, high = low + digit.step * digit.low, high + digit.step * digit.high
    return low, high


def positive(extents: Iterable[DimLike]) -> dict[str, DimLike]:
    """Sizes with tighter lower bounds, by name, given that some extents are at least 1."""
    found: dict[str, DimLike] = {}
    for extent in dict.fromkeys(extents):
        if not isinstance(extent, Dim):
            continue
        for atom in [atom for atom in extent.atoms() if atom.kind == "var"]:
            least = known = max(atom.lower or 0, _lower(found.get(atom.name, 0)))
            while least < MAX_LEAST and _empty(extent, atom.name, least):
                least += 1
            if least > known:
                found[atom.name] = dim(atom.name, least, None if atom.upper is None else max(atom.upper, least))
    return found


def _lower(d: DimLike) -> int:
    return 0 if isinstance(d, int) else d.lower or 0


@lru_cache(4096)  # every access asks again about the extents of the loops around it
def _empty(extent: Dim, name: str, most: int) -> bool:
    """Whether an extent is never positive while a size is at most `most`."""
    return always(extent.substitute({name: dim(name, 0, most)}), "<=", 0)


def within(d: DimLike, sizes: dict[str, DimLike]) -> DimLike:
    """An extent in terms of the tightened sizes."""
    if not sizes or isinstance(d, int):
        return d
    found = tuple([(name, sizes[name]) for name in d.variables if name in sizes])
    return _substituted(d, found) if found else d


@lru_cache(4096)  # nested scopes tighten few sizes each, and ask about the same facts
def _substituted(d: Dim, sizes: tuple[tuple[str, DimLike], ...]) -> DimLike:
    return d.substitute(dict(sizes))
