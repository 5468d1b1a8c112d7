"""Integer polynomials over atoms, as dictionaries from monomials to coefficients.

A monomial is a tuple of atoms sorted by key; the empty one is 1. Terms are ordered by degree, then
lexicographically: division needs a monomial order, which multiplication preserves.
"""

from functools import lru_cache
from math import prod
from typing import Any, Final, NoReturn, TypeAlias
from weakref import WeakValueDictionary
from zlib import crc32

from tenferro_tensor_core.forks import new_lock

from ._errors import TracingError

Monomial: TypeAlias = tuple["Atom", ...]
Poly: TypeAlias = dict[Monomial, int]
Bounds: TypeAlias = tuple[int | None, int | None]
Samples: TypeAlias = tuple[int | None, ...]

NESTED_MAX: Final = 48
"""Largest nesting depth of atoms: Python's parser accepts at most 200 nested brackets."""

SAMPLE_POINTS: Final = 8
"""Number of sample points (assignments of numbers to all variables) at which each new atom is evaluated."""

# Reentrant: a finalizer may run while the lock is held, and create atoms.
_lock: Final = new_lock()
_atoms: Final[WeakValueDictionary[str, "Atom"]] = WeakValueDictionary()


class Atom:
    """An indeterminate of the polynomials that represent symbolic sizes; interned and immutable.

    Attributes:
        kind: "var", "floordiv", "min" or "max".
        name: name of a variable, empty for other kinds.
        args: arguments of other kinds, empty for a variable.
        key: canonical text.
        lower: lower bound of the value, or None.
        upper: upper bound of the value, or None.
        samples: values at fixed points within the bounds of all variables, None where a divisor is zero.
        variables: names of the variables that occur.
        weight: number of atoms in the expanded text.
        depth: nesting depth of atoms.
    """

    __slots__ = (
        "__weakref__", "args", "depth", "key", "kind", "lower", "name", "samples", "upper", "variables", "weight",
    )  # fmt: skip
    kind: str
    name: str
    args: tuple[Any, ...]
    key: str
    lower: int | None
    upper: int | None
    samples: Samples
    variables: frozenset[str]
    weight: int
    depth: int

    def __new__(cls, *_: Any) -> "Atom":
        raise TypeError("Atom has no public constructor; use dim, floordiv, dim_min or dim_max")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"Atom is immutable: cannot set {name!r}")

    def __copy__(self) -> "Atom":
        return self

    def __deepcopy__(self, memo: Any) -> "Atom":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return intern_atom, (self.key, self.kind, self.name, self.args, (self.lower, self.upper))

    def __repr__(self) -> str:
        return f"Atom({self.key})"


def intern_atom(key: str, kind: str, name: str, args: tuple[Any, ...], bounds: Bounds) -> Atom:
    """Return the only atom with this key; create it if necessary.

    Raises:
        TracingError: atoms would be nested too deeply.
    """
    with _lock:
        atom = _atoms.get(key)
        if atom is None:
            inner = [a for arg in args if not isinstance(arg, int) for monomial, _ in arg.terms for a in monomial]
            names = frozenset([name]) if kind == "var" else frozenset().union(*[a.variables for a in inner])
            depth = 1 + max((a.depth for a in inner), default=0)
            if depth > NESTED_MAX:
                raise TracingError(
                    f"a size of {', '.join(sorted(names))} nests {depth} quotients, minima and maxima, each from a "
                    f"slice or a join of the previous one; at most {NESTED_MAX} are supported: trace with concrete "
                    "numbers for these sizes",
                    depth=depth,
                )
            atom = object.__new__(Atom)
            lower, upper = bounds
            fields = {"key": key, "kind": kind, "name": name, "args": args, "lower": lower, "upper": upper}
            for field, value in fields.items():
                object.__setattr__(atom, field, value)
            object.__setattr__(atom, "variables", names)
            object.__setattr__(atom, "depth", depth)
            object.__setattr__(atom, "weight", 1 + sum(a.weight for a in inner))
            object.__setattr__(atom, "samples", _drawn(atom) if kind == "var" else _computed(atom))
            _atoms[key] = atom
        return atom


def _drawn(atom: Atom) -> Samples:
    """Sample values of a variable: its bounds, a neighbour, and pseudo-random numbers seeded by its key."""
    low, high = atom.lower or 0, atom.upper
    noise = [crc32(f"{i} {atom.key}".encode()) for i in range(SAMPLE_POINTS - 3)]
    spread = [0, 1, 1000 if high is None else high - low, *(x % (2 << x % 11) for x in noise)]
    return tuple([low + (x if high is None else x % (high - low + 1)) for x in spread])


def _computed(atom: Atom) -> Samples:
    points = zip(*(samples(as_poly(arg)) for arg in atom.args))
    return tuple([None if None in values else _VALUE[atom.kind](*values) for values in points])


_VALUE: Final[dict[str, Any]] = {
    "min": min,
    "max": max,
    "floordiv": lambda a, b: a // b if b else None,
}


def samples(p: Poly) -> Samples:
    """Return the values of a polynomial at the sample points, None where a divisor is zero."""
    total: list[int | None] = [p.get((), 0)] * SAMPLE_POINTS
    for monomial, coefficient in p.items():
        for i, value in enumerate(_values(monomial) if monomial else ()):
            known = total[i]
            total[i] = None if known is None or value is None else known + coefficient * value
    return tuple(total)


@lru_cache(4096)  # proofs ask about sums of the same products again and again
def _values(monomial: Monomial) -> Samples:
    """Values of a nonempty product of atoms at the sample points."""
    return tuple([None if None in values else prod(values) for values in zip(*[atom.samples for atom in monomial])])


def as_poly(d: Any) -> Poly:
    """Convert a size, symbolic or not, to a polynomial."""
    return ({(): d} if d else {}) if isinstance(d, int) else dict(d.terms)


def ends(d: Any) -> Bounds:
    """Return the bounds of a size, symbolic or not."""
    return (d, d) if isinstance(d, int) else (d.lower, d.upper)


def rank(monomial: Monomial) -> tuple[int, list[str]]:
    """Sort key of a monomial: high degree first, then by the atoms' keys."""
    return -len(monomial), [atom.key for atom in monomial]


def product(a: Monomial, b: Monomial) -> Monomial:
    """Return the monomial a*b."""
    return tuple(sorted(a + b, key=lambda atom: atom.key)) if a and b else a or b


def quotient(a: Monomial, b: Monomial) -> Monomial | None:
    """Return the monomial a/b, or None if b does not divide a."""
    rest = list(a)
    for atom in b:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def add(p: Poly, q: Poly, scale: int = 1) -> Poly:
    """Return p + scale*q."""
    out = dict(p)
    for monomial, coefficient in q.items():
        out[monomial] = out.get(monomial, 0) + scale * coefficient
    return {m: c for m, c in out.items() if c}


def multiply(p: Poly, q: Poly) -> Poly:
    """Return p*q."""
    out: Poly = {}
    for a, ca in p.items():
        for b, cb in q.items():
            ab = product(a, b)
            out[ab] = out.get(ab, 0) + ca * cb
    return {m: c for m, c in out.items() if c}


def divide(p: Poly, q: Poly) -> tuple[Poly, Poly]:
    """Return integer polynomials (s, r) with p = s*q + r, where q's leading term divides no further term of r.

    Coefficients are divided towards zero, but the quotient of two constants is rounded down, so that
    (n - 1)//2 and (n + 1)//2 - 1 are equal.
    """
    lead = min(q, key=rank)
    scale = q[lead]
    todo, s, r = dict(p), Poly(), Poly()
    while todo:
        monomial = min(todo, key=rank)
        factor = quotient(monomial, lead)
        coefficient = todo[monomial]
        times = 0
        if factor is not None:
            times = coefficient // scale if not monomial else _towards_zero(coefficient, scale)
        if factor is not None and times:
            s[factor] = s.get(factor, 0) + times
            todo = add(todo, multiply({factor: times}, q), -1)
        # The remainder of this term is final: lower terms cannot change it.
        rest = todo.pop(monomial, 0)
        if rest:
            r[monomial] = rest
    return s, r


def _towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def common_factor(p: Poly, q: Poly) -> Monomial:
    """Return the largest monomial that divides every term of p and q."""
    terms = [*p, *q]
    out: list[Atom] = []
    for atom in terms[0]:
        if all(m.count(atom) > out.count(atom) for m in terms):
            out.append(atom)
    return tuple(out)


def bounds(p: Poly) -> Bounds:
    """Return lower and upper bounds of a polynomial by interval arithmetic."""
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in p.items():
        small, large = _ends(monomial)
        if coefficient < 0:
            small, large = large, small
        low = None if low is None or small is None else low + coefficient * small
        high = None if high is None or large is None else high + coefficient * large
    return low, high


@lru_cache(4096)
def _ends(monomial: Monomial) -> Bounds:
    """Bounds of a product of atoms."""
    found: Bounds = (1, 1)
    for atom in monomial:
        found = _interval_product(found, (atom.lower, atom.upper))
    return found


def _interval_product(a: Bounds, b: Bounds) -> Bounds:
    (low, high), (small, large) = a, b
    if low is not None and small is not None and low >= 0 and small >= 0:  # the usual case: sizes
        if high is not None and large is not None:
            return low * small, high * large
        return low * small, 0 if 0 in (high, large) else None
    # Each corner is (value, sign of infinity). Zero times infinity is zero: sizes are finite, only their bounds are
    # unknown.
    corners = [_corner(x, i, y, j) for i, x in enumerate(a) for j, y in enumerate(b)]
    low = None if -1 in (s for _, s in corners) else min(v for v, s in corners if not s)
    high = None if 1 in (s for _, s in corners) else max(v for v, s in corners if not s)
    return low, high


def _corner(x: int | None, x_end: int, y: int | None, y_end: int) -> tuple[int, int]:
    if x is not None and y is not None:
        return x * y, 0
    sign_x = (2 * x_end - 1) if x is None else (x > 0) - (x < 0)
    sign_y = (2 * y_end - 1) if y is None else (y > 0) - (y < 0)
    return 0, sign_x * sign_y
