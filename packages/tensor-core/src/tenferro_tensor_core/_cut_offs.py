"""One form of sizes that numbers cut off: max(0, min(2, n) - 1), as min(2, n) - min(1, n).

A function of integers that is linear but at some points is e + d*n + c1*min(k1, n) + c2*min(k2, n) + ... in one way
only. Sizes keep their short forms, max(0, n - 1) for n - min(1, n), whose products are short and which show that they
are not negative; this form is for the question whether two of them are equal.
"""

from collections.abc import Callable
from math import gcd
from typing import Any, Final, NamedTuple

from ._dims import as_dim, dim_max, dim_min, floordiv, memoised
from ._poly import Atom, Poly, add, as_poly, multiply, rank

MAX_UNFOLDED_TERMS: Final = 100
"""Largest number of terms of a polynomial that is unfolded."""

_MAKERS: Final[dict[str, Callable[..., Any]]] = {"min": dim_min, "max": dim_max, "floordiv": floordiv}


def unfolded(p: Poly) -> Poly:
    """Return an equal polynomial where each number that cuts off a size stands in a minimum of that size.

    One that would be too long is returned as it is.
    """
    out: Poly = {}
    for monomial, coefficient in p.items():
        term: Poly = {(): coefficient}
        for atom in monomial:
            term = multiply(term, memoised(_unfolded_atom, atom))
            if len(term) > MAX_UNFOLDED_TERMS:
                return p
        out = add(out, term)
    return out if len(out) <= MAX_UNFOLDED_TERMS else p


def _unfolded_atom(atom: Atom) -> Poly:
    if atom.kind == "var":
        return {(atom,): 1}
    make = _MAKERS[atom.kind]
    number = _number(atom)
    if number is None:
        polys = [unfolded(as_poly(arg)) for arg in atom.args]
        return _quotient(atom, *polys) if atom.kind == "floordiv" else as_poly(make(*map(as_dim, polys)))
    rest = unfolded(as_poly(make(*[arg for arg in atom.args if not isinstance(arg, int)])))
    cut = _cut_off(number, rest)
    return cut if atom.kind == "min" else add(add(rest, {(): number}), cut, -1)


def _quotient(atom: Atom, p: Poly, q: Poly) -> Poly:
    """Return p//q, another form of the atom; a number divides all coefficients down."""
    by = as_dim(q)
    if by == 0:
        return {(atom,): 1}
    whole = {m: c // by for m, c in p.items()} if isinstance(by, int) else {}
    rest = add(p, multiply(whole, q), -1)
    return add(whole, as_poly(floordiv(as_dim(rest), by)))


def _number(atom: Atom) -> int | None:
    numbers = [arg for arg in atom.args if isinstance(arg, int)] if atom.kind in ("min", "max") else []
    return numbers[0] if numbers else None


class _Bent(NamedTuple):
    """The function e + d*base + c1*min(k1, base) + ... of the integer `base`; `bends` are the c by their k."""

    base: Poly
    e: int
    d: int
    bends: dict[int, int]

    def at(self, n: int) -> int:
        return self.e + self.d * n + sum(c * min(k, n) for k, c in self.bends.items())

    def poly(self) -> Poly:
        out = add(multiply({(): self.d}, self.base), {(): self.e})
        for k, c in self.bends.items():
            out = add(out, as_poly(dim_min(k, as_dim(self.base))), c)
        return out


def _cut_off(number: int, p: Poly) -> Poly:
    """Return min(number, p)."""
    f = _bent(p)
    if f is None:
        return as_poly(dim_min(number, as_dim(p)))
    starts = sorted(f.bends) or [0]
    points = set(starts)
    for start, step in [(starts[0], -1), *((k, 1) for k in starts)]:
        slope = (f.at(start + step) - f.at(start)) * step
        if slope:  # where the line through these points meets the number, perhaps between two integers
            meeting = start + (number - f.at(start)) // slope
            points |= {meeting, meeting + 1}

    def cut(n: int) -> int:
        return min(number, f.at(n))

    bends = {k: 2 * cut(k) - cut(k - 1) - cut(k + 1) for k in sorted(points)}
    last = max(points) + 1
    d = cut(last + 1) - cut(last)
    e = cut(last) - d * last - sum(c * k for k, c in bends.items())
    return _Bent(f.base, e, d, {k: c for k, c in bends.items() if c}).poly()


def _bent(p: Poly) -> _Bent | None:
    """Return an unfolded polynomial as a function of one size; ``None`` where several are cut off."""
    e, bends, rest = 0, dict[int, int](), Poly()
    bases: list[Poly] = []
    for monomial, c in p.items():
        number = _number(monomial[0]) if len(monomial) == 1 else None
        if not monomial:
            e += c
        elif number is None:
            rest[monomial] = c
        else:  # min(number, base + t) is min(number - t, base) + t
            base = as_poly(dim_min(*[arg for arg in monomial[0].args if not isinstance(arg, int)]))
            t = base.pop((), 0)
            bases.append(base)
            bends[number - t] = bends.get(number - t, 0) + c
            e += c * t
    if not bases:
        sign = 1 if not rest or rest[min(rest, key=rank)] > 0 else -1
        d = sign * (gcd(*rest.values()) or 1)
        return _Bent({m: c // d for m, c in rest.items()}, e, d, {})
    base = bases[0]
    lead = min(base, key=rank)
    d = rest.get(lead, 0) // base[lead]
    if any(other != base for other in bases) or add(rest, base, -d):
        return None
    return _Bent(base, e, d, bends)
