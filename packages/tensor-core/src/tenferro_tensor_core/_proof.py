"""Proofs that a polynomial in sizes is never negative.

Interval arithmetic alone cannot prove n >= min(n, m). The search therefore also replaces one atom at
a time, to a small depth: by an argument that makes the polynomial smaller (a relaxation), or by each
of its arguments in turn, one of which it equals (a case distinction).

Most answers are no. Values at sample points refute such goals, and subgoals, immediately. The number
of goals per question is bounded.
"""

from collections.abc import Iterator
from typing import Any, Final

from ._poly import Atom, Monomial, Poly, add, as_poly, bounds, ends, multiply, samples

MAX_REPLACED_ATOMS: Final = 3
"""Largest depth of the search: number of atoms replaced one after the other."""

MAX_GOALS: Final = 100
"""Largest number of goals (polynomials) per question."""

PROVED: Final = -1
"""Marks a proved goal among the searched depths."""


def nonnegative(p: Poly) -> bool:
    """Whether p >= 0 follows from bounds and from the definitions of min, max and floordiv."""
    known = _by_bounds(p)
    if known is not None:
        return known
    tried: dict[frozenset[tuple[Monomial, int]], int] = {}
    return any(_proved(p, depth, tried) for depth in range(1, MAX_REPLACED_ATOMS + 1))  # short proofs first


def _proved(p: Poly, depth: int, tried: dict[frozenset[tuple[Monomial, int]], int]) -> bool:
    """Search for a proof of p >= 0; `tried` maps each goal of this question to the depth searched in vain."""
    goal = frozenset(p.items())
    known = tried.get(goal)
    if known is not None and (known == PROVED or known >= depth):
        return known == PROVED
    if len(tried) >= MAX_GOALS:
        return False
    tried[goal] = depth
    found = _by_bounds(p)
    if found is None and depth:
        found = any(_proved(smaller, depth - 1, tried) for smaller in _relaxations(p)) or any(
            all(_proved(case, depth - 1, tried) for case in cases) for cases in _cases(p)
        )
    if found:
        tried[goal] = PROVED
    return bool(found)


def _by_bounds(p: Poly) -> bool | None:
    """Answer by interval arithmetic and samples, or None."""
    low, high = bounds(p)
    if low is not None and low >= 0:
        return True
    if (high is not None and high < 0) or any(x is not None and x < 0 for x in samples(p)):
        return False
    return None


def _cases(p: Poly) -> Iterator[list[Poly]]:
    """Yield, for each extremum, the polynomials in which one of its arguments replaces it."""
    for monomial, coefficient in p.items():
        for atom in monomial:
            if atom.kind == ("max" if coefficient < 0 else "min") and monomial.count(atom) == 1:
                rest: Poly = {tuple(x for x in monomial if x is not atom): coefficient}
                others = add(p, {monomial: coefficient}, -1)
                yield [add(others, multiply(rest, as_poly(arg))) for arg in atom.args]


def _relaxations(p: Poly) -> Iterator[Poly]:
    """Yield polynomials that are at most p."""
    yield from _cancellations(p)
    for monomial, coefficient in p.items():
        for atom in monomial:
            if atom.kind == "var" or monomial.count(atom) > 1:
                continue
            rest: Poly = {tuple(x for x in monomial if x is not atom): 1}
            low, _ = bounds(rest)
            if low is None or low < 0:
                continue
            others = add(p, {monomial: coefficient}, -1)
            for bound in _at_most(coefficient, atom):
                yield add(others, multiply(rest, bound))


def _cancellations(p: Poly) -> Iterator[Poly]:
    """Yield max(0, a) - max(0, a) for max(0, a) - max(0, a - 2): the larger extremum replaces the smaller."""
    alone = [(m[0], c) for m, c in p.items() if len(m) == 1 and m[0].kind in ("min", "max")]
    for large, gain in alone:
        for small, loss in alone:
            if gain > 0 > loss and large.kind == small.kind and _dominates(large.args, small.args):
                yield add(p, {(large,): loss, (small,): -loss})


def _dominates(large: tuple[Any, ...], small: tuple[Any, ...]) -> bool:
    """Whether each argument exceeds the corresponding one by a nonnegative number."""
    gaps = [x - y for x, y in zip(large, small)]
    return len(large) == len(small) and all(isinstance(gap, int) and gap >= 0 for gap in gaps)


def _at_most(coefficient: int, atom: Atom) -> Iterator[Poly]:
    """Yield polynomials that are at most coefficient*atom."""
    if atom.kind == ("min" if coefficient < 0 else "max"):
        for arg in atom.args:
            yield multiply({(): coefficient}, as_poly(arg))
    if atom.kind != "floordiv":
        return
    a, b = atom.args
    if isinstance(b, int) and b > 0 and coefficient % b == 0:
        # a - b + 1 <= b*(a//b) <= a
        numerator = as_poly(a) if coefficient < 0 else add(as_poly(a), {(): b - 1}, -1)
        yield multiply({(): coefficient // b}, numerator)
    elif coefficient < 0 and all(low is not None and low >= 0 for low, _ in (ends(a), ends(b))):
        # c*(a//b) <= a for c <= b
        yield multiply({(): -1 if isinstance(b, int) and -coefficient <= b else coefficient}, as_poly(a))
