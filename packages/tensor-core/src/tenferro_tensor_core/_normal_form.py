"""Normal form of sizes clipped by numbers: max(0, min(2, n) - 1) is min(2, n) - min(1, n).

A piecewise linear function of an integer n has a unique form e + d*n + c1*min(k1, n) + c2*min(k2, n) + ... This form
decides equality. Otherwise sizes keep their short forms, such as max(0, n - 1) for n - min(1, n), which multiply
compactly and are visibly nonnegative.
"""

from collections.abc import Callable
from math import gcd
from typing import Any, Final, NamedTuple

from ._dims import as_dim, dim_max, dim_min, floordiv, memoised
from ._poly import Atom, Poly, add, as_poly, multiply, rank

MAX_TERMS: Final = 100
"""Largest number of terms of a polynomial in normal form; longer ones are not converted."""

_MAKERS: Final[dict[str, Callable[..., Any]]] = {"min": dim_min, "max": dim_max, "floordiv": floordiv}


def normal_form(p: Poly) -> Poly:
    """Return the normal form of a polynomial, in which numbers clip sizes only by minima.

    A polynomial whose normal form is too long is returned unchanged.
    """
    out: Poly = {}
    for monomial, coefficient in p.items():
        term: Poly = {(): coefficient}
        for atom in monomial:
            term = multiply(term, memoised(_atom_normal_form, atom))
            if len(term) > MAX_TERMS:
                return p
        out = add(out, term)
    return out if len(out) <= MAX_TERMS else p


def _atom_normal_form(atom: Atom) -> Poly:
    if atom.kind == "var":
        return {(atom,): 1}
    make = _MAKERS[atom.kind]
    number = _number(atom)
    if number is None:
        polys = [normal_form(as_poly(arg)) for arg in atom.args]
        return _quotient(atom, *polys) if atom.kind == "floordiv" else as_poly(make(*map(as_dim, polys)))
    rest = normal_form(as_poly(make(*[arg for arg in atom.args if not isinstance(arg, int)])))
    cut = _clipped(number, rest)
    return cut if atom.kind == "min" else add(add(rest, {(): number}), cut, -1)


def _quotient(atom: Atom, p: Poly, q: Poly) -> Poly:
    """Return p//q, which equals the atom; a numeric divisor divides all coefficients, rounding down."""
    by = as_dim(q)
    if by == 0:
        return {(atom,): 1}
    whole = {m: c // by for m, c in p.items()} if isinstance(by, int) else {}
    rest = add(p, multiply(whole, q), -1)
    return add(whole, as_poly(floordiv(as_dim(rest), by)))


def _number(atom: Atom) -> int | None:
    numbers = [arg for arg in atom.args if isinstance(arg, int)] if atom.kind in ("min", "max") else []
    return numbers[0] if numbers else None


class _PiecewiseLinear(NamedTuple):
    """The function e + d*base + c1*min(k1, base) + ... of the integer `base`; `kinks` maps k to c."""

    base: Poly
    e: int
    d: int
    kinks: dict[int, int]

    def at(self, n: int) -> int:
        return self.e + self.d * n + sum(c * min(k, n) for k, c in self.kinks.items())

    def poly(self) -> Poly:
        out = add(multiply({(): self.d}, self.base), {(): self.e})
        for k, c in self.kinks.items():
            out = add(out, as_poly(dim_min(k, as_dim(self.base))), c)
        return out


def _clipped(number: int, p: Poly) -> Poly:
    """Return min(number, p)."""
    f = _piecewise_linear(p)
    if f is None:
        return as_poly(dim_min(number, as_dim(p)))
    starts = sorted(f.kinks) or [0]
    points = set(starts)
    for start, step in [(starts[0], -1), *((k, 1) for k in starts)]:
        slope = (f.at(start + step) - f.at(start)) * step
        if slope:  # the line crosses the number here, possibly between two integers
            meeting = start + (number - f.at(start)) // slope
            points |= {meeting, meeting + 1}

    def cut(n: int) -> int:
        return min(number, f.at(n))

    kinks = {k: 2 * cut(k) - cut(k - 1) - cut(k + 1) for k in sorted(points)}
    last = max(points) + 1
    d = cut(last + 1) - cut(last)
    e = cut(last) - d * last - sum(c * k for k, c in kinks.items())
    return _PiecewiseLinear(f.base, e, d, {k: c for k, c in kinks.items() if c}).poly()


def _piecewise_linear(p: Poly) -> _PiecewiseLinear | None:
    """Return a polynomial in normal form as a function of one size, or None if several sizes are clipped."""
    e, kinks, rest = 0, dict[int, int](), Poly()
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
            kinks[number - t] = kinks.get(number - t, 0) + c
            e += c * t
    if not bases:
        sign = 1 if not rest or rest[min(rest, key=rank)] > 0 else -1
        d = sign * (gcd(*rest.values()) or 1)
        return _PiecewiseLinear({m: c // d for m, c in rest.items()}, e, d, {})
    base = bases[0]
    lead = min(base, key=rank)
    d = rest.get(lead, 0) // base[lead]
    if any(other != base for other in bases) or add(rest, base, -d):
        return None
    return _PiecewiseLinear(base, e, d, kinks)
