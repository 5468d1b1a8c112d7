"""Proofs that a polynomial in sizes is never negative.

Intervals alone do not see that n >= min(n, m): besides them, one atom at a time is replaced by
an argument of it that makes the whole smaller (a relaxation), or by each of the arguments, one of
which it equals (cases), to a small depth.
"""

from collections.abc import Iterator

from ._poly import Atom, Poly, add, as_poly, bounds, ends, multiply


def nonnegative(p: Poly, depth: int = 3) -> bool:
    """Tell whether p >= 0 follows from bounds and from what min, max and floordiv mean."""
    low, high = bounds(p)
    if low is not None and low >= 0:
        return True
    if depth == 0 or (high is not None and high < 0):
        return False
    return any(nonnegative(smaller, depth - 1) for smaller in _relaxations(p)) or any(
        all(nonnegative(case, depth - 1) for case in cases) for cases in _cases(p)
    )


def _cases(p: Poly) -> Iterator[list[Poly]]:
    """Yield, for each extremum, the polynomials with its arguments in its place."""
    for monomial, coefficient in p.items():
        for atom in monomial:
            if atom.kind == ("max" if coefficient < 0 else "min") and monomial.count(atom) == 1:
                rest: Poly = {tuple(x for x in monomial if x is not atom): coefficient}
                others = add(p, {monomial: coefficient}, -1)
                yield [add(others, multiply(rest, as_poly(arg))) for arg in atom.args]


def _relaxations(p: Poly) -> Iterator[Poly]:
    """Yield polynomials that are at most p."""
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
        yield multiply({(): coefficient}, as_poly(a))
