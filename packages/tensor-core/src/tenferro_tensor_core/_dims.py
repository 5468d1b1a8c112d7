"""Symbolic dimensions: interned canonical polynomials, so that identity is equality.

A `Dim` is a polynomial with integer coefficients over atoms: variables, floor quotients, minima
and maxima. A result without variables is a plain int. This module answers questions by bounds alone
(`nonnegative`); `_decide` and `_decisions` build on it.
"""

from collections.abc import Callable, Iterator, Mapping
from math import gcd
from operator import index
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, Union
from weakref import WeakValueDictionary

from tenferro_tensor_core.forks import new_lock

from . import _poly, _proof
from ._dim_text import key_of, key_of_atom, shown, source
from ._errors import ArgumentError, InconclusiveDimError, ShapeError
from ._memo import MISSING, Memo
from ._poly import Atom, Bounds, Monomial, Poly, as_poly, ends

DimLike: TypeAlias = Union[int, "Dim"]
"""A size: a number or a symbolic one."""

DIM_MEMO: Final = Memo(16384)
"""Results of the algebra by operand identity; `stats()` and `clear()` may be called at any time."""

# Reentrant: a finalizer may run while the lock is held, and create sizes.
_lock: Final = new_lock()
_dims: Final[WeakValueDictionary[Any, "Dim"]] = WeakValueDictionary()


class Dim:
    """A symbolic size: an integer polynomial in named sizes, in canonical form.

    Equal expressions are the same object, so `==` is identity: `n == 3` is False for a symbolic
    `n`. Use `ask` to compare sizes. `+ - * // %` build new sizes. `dim` creates variables.

    Attributes:
        terms: pairs of a monomial and its coefficient.
        lower: lower bound of the value, or None.
        upper: upper bound of the value, or None.

    >>> n, m = dim("n"), dim("m")
    >>> (n + m) * n - m * n is n * n
    True
    >>> 2 * n + 1, (n * m) // m, (4 * n + 3) // 4, n - n
    (2*n + 1, n, n, 0)
    """

    __slots__ = ("__weakref__", "lower", "terms", "upper")
    terms: tuple[tuple[Monomial, int], ...]
    lower: int | None
    upper: int | None

    # NumPy integers must defer `np.int64(2) * n` to __rmul__ instead of making an object array.
    __array_ufunc__ = None

    def __new__(cls, *_: Any) -> "Dim":
        raise TypeError("Dim has no public constructor; use dim(name) and arithmetic")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"Dim is immutable: cannot set {name!r}")

    def __add__(self, other: Any) -> DimLike:
        return _binary(_add, self, other)

    def __radd__(self, other: Any) -> DimLike:
        return _binary(_add, self, other)

    def __sub__(self, other: Any) -> DimLike:
        return _binary(_sub, self, other)

    def __rsub__(self, other: Any) -> DimLike:
        return _binary(_sub, other, self)

    def __mul__(self, other: Any) -> DimLike:
        return _binary(_mul, self, other)

    def __rmul__(self, other: Any) -> DimLike:
        return _binary(_mul, self, other)

    def __neg__(self) -> DimLike:
        return _binary(_mul, self, -1)

    def __floordiv__(self, other: Any) -> DimLike:
        return _binary(_floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> DimLike:
        return _binary(_floordiv, other, self)

    def __mod__(self, other: Any) -> DimLike:
        return _binary(_mod, self, other)

    def __rmod__(self, other: Any) -> DimLike:
        return _binary(_mod, other, self)

    def __bool__(self) -> NoReturn:
        raise InconclusiveDimError(
            f"the symbolic size {self} has no truth value; use ask({self}, '!=', 0)",
            dim=self,
        )

    def __copy__(self) -> "Dim":
        return self

    def __deepcopy__(self, memo: Any) -> "Dim":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_terms, (self.terms,)

    def __repr__(self) -> str:
        return shown(self)

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that occur, including inside quotients, minima and maxima.

        >>> sorted((dim("n") * dim("m") // 2).variables)
        ['m', 'n']
        """
        return frozenset().union(*[atom.variables for monomial, _ in self.terms for atom in monomial])

    def atoms(self) -> Iterator[Atom]:
        """Iterate over the atoms.

        Returns:
            An iterator that yields every atom once, arguments before the atoms that use them.

        >>> [atom.kind for atom in floordiv(dim("n"), 2).atoms()]
        ['var', 'floordiv']
        """
        seen: set[Atom] = set()

        def walk(d: DimLike) -> Iterator[Atom]:
            if isinstance(d, Dim):
                for monomial, _ in d.terms:
                    for atom in monomial:
                        if atom not in seen:
                            seen.add(atom)
                            for arg in atom.args:
                                yield from walk(arg)
                            yield atom

        return walk(self)

    def bare(self) -> Iterator["Dim"]:
        """Iterate over the variables.

        Returns:
            An iterator that yields each variable that occurs, as a size.

        >>> list((dim("n", min=1) * dim("m") // 2).bare())
        [m, n]
        """
        return (_dim({(atom,): 1}) for atom in self.atoms() if atom.kind == "var")

    def evaluate(self, bindings: Mapping[str, int]) -> int:
        """Return the value for given values of the variables.

        Args:
            bindings: value of each variable by name.

        Returns:
            The value.

        Raises:
            ArgumentError: a variable is not bound.
            ShapeError: a value is outside the bounds of its variable, or a divisor is zero.

        >>> (dim("n") * 2 + 1).evaluate({"n": 5})
        11
        """
        value = _number(self, bindings, {})
        return int(_value(self, bindings, True, {})) if value is None else value  # type: ignore[arg-type]

    def substitute(self, bindings: Mapping[str, DimLike]) -> DimLike:
        """Return the size with variables replaced by other sizes.

        Args:
            bindings: replacements by name of the variable; other variables stay symbolic.

        Returns:
            The size, an int if no variable is left.

        >>> n, m = dim("n"), dim("m")
        >>> (n * n + m).substitute({"n": m + 1})
        m*m + 3*m + 1
        """
        return _value(self, bindings, False, {})

    def source(self, names: Mapping[str, str]) -> str:
        """Return a Python expression for the value.

        Args:
            names: Python expression of each variable by name; by default its own name.

        Returns:
            Source code of an expression.

        >>> (dim("n") // 2 + 1).source({"n": "sizes[0]"})
        '(sizes[0])//2 + 1'
        """
        return source(self, names)

    def describe(self) -> str:
        """Return the expression and the bounds of its variables as text.

        Returns:
            One line of text.

        >>> (dim("n", min=1) + dim("m", max=64)).describe()
        'm + n with 0 <= m <= 64, 1 <= n'
        """
        clauses = [
            f"{atom.lower} <= {atom.name}" + (f" <= {atom.upper}" if atom.upper is not None else "")
            for atom in sorted(self.atoms(), key=lambda atom: atom.key)
            if atom.kind == "var"
        ]
        return f"{self} with {', '.join(clauses)}"


def dim(name: str, min: int = 0, max: int | None = None) -> Dim:
    """Return the symbolic size called `name`.

    The same name with the same bounds is the same object; with other bounds it is another size
    (`describe()` shows the bounds).

    Args:
        name: a Python identifier.
        min: smallest value.
        max: largest value, or None.

    Returns:
        The variable.

    Raises:
        ArgumentError: the name is not an identifier, or the bounds exclude every size.

    >>> dim("batch", min=1), dim("n") is dim("n"), dim("n") is dim("n", min=1)
    (batch, True, False)
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"dim needs an identifier as name, got {name!r}; try 'n'", name=name)
    low, high = _size(min), None if max is None else _size(max)
    if not isinstance(low, int) or low < 0 or (high is not None and not (isinstance(high, int) and high >= low)):
        raise ArgumentError(
            f"dim {name!r} needs 0 <= min <= max, got {min=} and {max=}; correct the bounds",
            name=name,
            min=min,
            max=max,
        )
    key = name if (low, high) == (0, None) else f"{name}[{low}:{'' if high is None else high}]"
    return _dim({(_poly.intern_atom(key, "var", name, (), (low, high)),): 1})


def floordiv(a: DimLike, b: DimLike) -> DimLike:
    """Return the quotient rounded down, as the operator `//` does.

    Args:
        a: dividend.
        b: divisor, which must not be zero when the size is evaluated.

    Returns:
        The quotient, an int if it is constant.

    Raises:
        ArgumentError: `b` is the constant zero.

    >>> n = dim("n")
    >>> floordiv(7, 2), floordiv(6 * n + 1, 2), floordiv(n * n + n, n + 1)
    (3, 3*n, n)
    """
    a, b = _size(a), _size(b)
    if isinstance(a, int) and isinstance(b, int) and b:
        return a // b
    return memoised(_floordiv, a, b)


def dim_min(*dims: DimLike) -> DimLike:
    """Return the smallest of several sizes; arguments that the bounds exclude are dropped.

    Args:
        dims: one or more sizes.

    Returns:
        The minimum, an int if it is constant.

    Raises:
        ArgumentError: no size was given.

    >>> n = dim("n", max=64)
    >>> dim_min(n, 100), dim_min(n, dim("m"), n + 1), dim_min(3, 4)
    (n, min(m, n), 3)
    """
    return _extremum("min", dims)


def dim_max(*dims: DimLike) -> DimLike:
    """Return the largest of several sizes; arguments that the bounds exclude are dropped.

    Args:
        dims: one or more sizes.

    Returns:
        The maximum, an int if it is constant.

    Raises:
        ArgumentError: no size was given.

    >>> dim_max(dim("n"), 0), dim_max(dim("n") - 2, 0)
    (n, max(0, n - 2))
    """
    return _extremum("max", dims)


def evaluate(d: DimLike, bindings: Mapping[str, int]) -> int:
    """Return the value of a size, symbolic or not, for given values of the variables.

    Args:
        d: the size.
        bindings: value of each variable by name.

    Returns:
        The value.

    Raises:
        ArgumentError: a variable is not bound.
        ShapeError: a value is outside the bounds of its variable, or a divisor is zero.

    >>> evaluate(dim("n") + 1, {"n": 2}), evaluate(7, {})
    (3, 7)
    """
    return d.evaluate(bindings) if isinstance(d, Dim) else index(d)


def as_size(x: Any) -> Any:
    """Return the `Dim` or int of an object with ``__dim__``.

    Args:
        x: any object.

    Returns:
        The result of ``x.__dim__()``, or `x` itself if it has no such method.

    >>> as_size(3)
    3
    """
    if x.__class__ is int or x.__class__ is Dim:
        return x
    method = getattr(x.__class__, "__dim__", None)
    return x if method is None else method(x)


def _size(x: Any) -> DimLike:
    """Convert any integer type to int; a Dim stays as it is."""
    x = as_size(x)
    if isinstance(x, Dim):
        return x
    try:
        return int(index(x))
    except TypeError:
        raise ArgumentError(f"a size is an int or a Dim, got {x!r}; convert it to one of them", given=x) from None


T = TypeVar("T")


def _binary(operation: Callable[[DimLike, DimLike], DimLike], a: Any, b: Any) -> DimLike:
    """Apply an operator; operands that are not integers, or that have ``__dim__``, implement it themselves."""
    kind = b.__class__ if a.__class__ is Dim else a.__class__
    if kind is not int and kind is not Dim:
        if hasattr(kind, "__dim__"):
            return NotImplemented  # type: ignore[no-any-return]
        try:
            a, b = _size(a), _size(b)
        except ArgumentError:
            return NotImplemented  # type: ignore[no-any-return]
    return memoised(operation, a, b)


def memoised(operation: Callable[..., T], *key: Any) -> T:
    """Return ``operation(*key)``, memoised in `DIM_MEMO`."""
    found: T = DIM_MEMO.get((operation, *key))
    if found is MISSING:
        found = operation(*key)
        DIM_MEMO.put((operation, *key), found)
    return found


def as_dim(p: Poly) -> DimLike:
    """Return the canonical size of a polynomial: an int when it is constant."""
    if all(not monomial for monomial in p):
        return p.get((), 0)
    resolved = _resolved(p)
    return _dim(p) if resolved is None else resolved


def _resolved(p: Poly) -> DimLike | None:
    """Return a shorter form of a sum with an extremum, or None if there is none.

    For example, n - min(1, n) is max(0, n - 1), and max(a, b) + min(a, b) is a + b.
    """
    extrema = [
        (m[0], c) for m, c in p.items() if len(m) == 1 and m[0].kind in _OTHER and c in (1, -1) and len(m[0].args) == 2
    ]
    for atom, c in extrema:
        a, b = atom.args
        rest = {m: k for m, k in p.items() if m != (atom,)}
        if c == -1:
            left, right = (_poly.add(rest, as_poly(d), -1) for d in (a, b))
            if min(_degree(left), _degree(right)) == 0:
                return _extremum(_OTHER[atom.kind], (as_dim(left), as_dim(right)))
        elif atom.kind == "max":
            for other, k in extrema:
                # max(a, b) + min(a + t, b + t) is a + b + t
                for x, y in (other.args, other.args[::-1]) if other.kind == "min" and k == 1 else ():
                    t = x - a
                    if y - b == t:
                        rest.pop((other,))
                        return as_dim(_poly.add(rest, as_poly(a + b + t)))
    return None


_OTHER: Final = {"min": "max", "max": "min"}


def _degree(p: Poly) -> int:
    return max(map(len, p), default=0)


def _dim(p: Poly) -> Dim:
    terms = tuple(sorted(p.items(), key=lambda term: _poly.rank(term[0])))
    with _lock:
        d = _dims.get(terms)
        if d is None:
            d = object.__new__(Dim)
            low, high = _poly.bounds(p)
            object.__setattr__(d, "terms", terms)
            object.__setattr__(d, "lower", low)
            object.__setattr__(d, "upper", high)
            _dims[terms] = d
        return d


def _from_terms(terms: tuple[tuple[Monomial, int], ...]) -> DimLike:
    return as_dim(dict(terms))


def divisible(d: DimLike, by: DimLike) -> bool:
    """Whether a size is a polynomial multiple of another, hence zero wherever that is zero."""
    return isinstance(by, Dim) and not _poly.divide(as_poly(d), as_poly(by))[1]


def nonnegative(d: DimLike) -> bool:
    """Whether d >= 0 provably holds for all values within the bounds."""
    if isinstance(d, int):
        return d >= 0
    if d.lower is not None and d.lower >= 0:
        return True
    return memoised(_proved, d)


def _proved(d: Dim) -> bool:
    return _proof.nonnegative(dict(d.terms))


def _add(a: DimLike, b: DimLike) -> DimLike:
    return as_dim(_poly.add(as_poly(a), as_poly(b)))


def _sub(a: DimLike, b: DimLike) -> DimLike:
    return as_dim(_poly.add(as_poly(a), as_poly(b), -1))


def _mul(a: DimLike, b: DimLike) -> DimLike:
    return as_dim(_poly.multiply(as_poly(a), as_poly(b)))


def _mod(a: DimLike, b: DimLike) -> DimLike:
    return a - b * floordiv(a, b)


def _floordiv(a: DimLike, b: DimLike) -> DimLike:
    if isinstance(b, int) and b == 0:
        raise ArgumentError(f"cannot divide the size {a} by zero; use a positive divisor", dim=a)
    p, q = as_poly(a), as_poly(b)
    if not p:
        return 0
    shared = gcd(*p.values(), *q.values())
    if q[min(q, key=_poly.rank)] < 0:
        shared = -shared
    factor = _poly.common_factor(p, q)
    p, q = (_poly.divide(x, {factor: shared})[0] for x in (p, q))
    if (known := as_poly(as_dim(p))) != p:  # -min(n, 1) becomes max(1 - n, 0) - 1, whose constant term divides
        return floordiv(as_dim(known), as_dim(q))
    whole, rest = _poly.divide(p, q)
    return as_dim(whole) + _remainder_quotient(as_dim(rest), as_dim(q))


def _remainder_quotient(a: DimLike, b: DimLike) -> DimLike:
    """Return a//b for the remainder of a polynomial division: a constant or an atom."""
    if isinstance(b, int):
        if isinstance(a, int):
            return a // b
        a, b = _reduced(dict(a.terms), b)
    low, high = _quotient_bounds(ends(a), ends(b))
    if low is not None and low == high:
        return low
    if nonnegative(a) and nonnegative(b - a - 1):
        return 0
    return _dim({(_poly.intern_atom(key_of_atom("floordiv", a, b), "floordiv", "", (a, b), (low, high)),): 1})


def _reduced(p: Poly, b: int) -> tuple[DimLike, int]:
    """Return an equal quotient in lowest terms: (2*n + 1)//4 is n//2, (n//2)//2 is n//4."""
    constant = p.pop((), 0)
    shared = gcd(b, *p.values())
    p = {m: c // shared for m, c in p.items()}
    constant, b = constant // shared, b // shared
    (monomial, coefficient), *others = p.items()
    if not others and coefficient == 1 and len(monomial) == 1 and monomial[0].kind == "floordiv":
        inner, by = monomial[0].args
        if isinstance(by, int) and by > 0:
            return _reduced(dict((inner + constant * by).terms), by * b)
    return as_dim(_poly.add(p, {(): constant})), b


def _quotient_bounds(a: Bounds, b: Bounds) -> Bounds:
    (low, high), (small, large) = a, b
    if small is None or small < 0:
        return None, None
    small = max(small, 1)  # the quotient is undefined at zero
    least: int | None = 0
    if low is None or low < 0:
        least = None if low is None else low // small
    elif large is not None:
        least = low // max(large, 1)
    most: int | None = -1
    if high is None or high >= 0:
        most = None if high is None else high // small
    elif large is not None:
        most = high // max(large, 1)
    return least, most


def _extremum(kind: str, dims: tuple[DimLike, ...]) -> DimLike:
    if not dims:
        raise ArgumentError(f"dim_{kind} needs at least one size, got none; pass one or more")
    sizes = tuple(map(_size, dims))
    numbers = [d for d in sizes if isinstance(d, int)]
    if len(numbers) == len(sizes):
        return min(numbers) if kind == "min" else max(numbers)
    return memoised(_extremum_of, kind, sizes)


def _extremum_of(kind: str, dims: tuple[DimLike, ...]) -> DimLike:
    sign = 1 if kind == "min" else -1
    kept: list[DimLike] = []
    for d in sorted(_flattened(kind, dims), key=key_of):
        if any(nonnegative((d - k) * sign) for k in kept):
            continue
        kept = [k for k in kept if not nonnegative((k - d) * sign)] + [d]
    if len(kept) == 1:
        return kept[0]
    # Canonical form of extrema that differ by a constant: min(n - 1, 0) is min(n, 1) - 1. A maximum with a number
    # keeps it: the extent of a slice, max(n - 2, 0), is one term, and so is a product of such extents, which
    # interval arithmetic then proves nonnegative.
    number = next((d for d in kept if isinstance(d, int)), None) if kind == "max" else None
    shift = min(d if isinstance(d, int) else dict(d.terms).get((), 0) for d in kept) if number is None else number
    if shift:
        return _extremum_of(kind, tuple([d - shift for d in kept])) + shift
    lower, upper = zip(*(ends(d) for d in kept))
    if kind == "min":
        bounds = _least(lower), min((u for u in upper if u is not None), default=None)
    else:
        bounds = max((x for x in lower if x is not None), default=None), _most(upper)
    return _dim({(_poly.intern_atom(key_of_atom(kind, *kept), kind, "", tuple(kept), bounds),): 1})


def _least(bounds: tuple[int | None, ...]) -> int | None:
    known = [b for b in bounds if b is not None]
    return min(known) if len(known) == len(bounds) else None


def _most(bounds: tuple[int | None, ...]) -> int | None:
    known = [b for b in bounds if b is not None]
    return max(known) if len(known) == len(bounds) else None


def _flattened(kind: str, dims: tuple[DimLike, ...]) -> Iterator[DimLike]:
    for d in dims:
        if isinstance(d, Dim) and (len(d.terms) == 1 or (len(d.terms) == 2 and not d.terms[1][0])):
            (monomial, coefficient), *number = d.terms
            if coefficient == 1 and len(monomial) == 1 and monomial[0].kind == kind:
                yield from (arg + sum(n for _, n in number) for arg in monomial[0].args)
                continue
        yield d


def _number(d: Dim, bindings: Mapping[str, int], known: dict[Atom, int]) -> int | None:
    """The value where all bindings are plain integers within bounds; ``None`` leaves other cases to `_value`.

    `known` memoises the values of quotients and extrema, which sizes share.
    """
    number = 0
    for monomial, product in d.terms:
        for atom in monomial:
            value: int | None
            if atom.kind == "var":
                value = bindings.get(atom.name)
                if value.__class__ is not int or value < (atom.lower or 0):
                    return None
                if atom.upper is not None and value > atom.upper:
                    return None
            else:
                value = known.get(atom)
                if value is None:
                    value = _atom_number(atom, bindings, known)
                    if value is None:
                        return None
                    known[atom] = value
            product *= value
        number += product
    return number


def _atom_number(atom: Atom, bindings: Mapping[str, int], known: dict[Atom, int]) -> int | None:
    args = []
    for arg in atom.args:
        value = arg if arg.__class__ is int else _number(arg, bindings, known)
        if value is None:
            return None
        args.append(value)
    if atom.kind != "floordiv":
        return min(args) if atom.kind == "min" else max(args)
    return args[0] // args[1] if args[1] else None


def _value(d: DimLike, bindings: Mapping[str, DimLike], checked: bool, known: dict[Atom, DimLike]) -> DimLike:
    """Evaluate a size; with `checked`, every variable must be bound to a value within its bounds.

    `known` memoises the values of atoms, which sizes share.
    """
    if isinstance(d, int):
        return d
    number: int = 0
    rest: Poly = {}
    for monomial, coefficient in d.terms:
        product: DimLike = 1
        for atom in monomial:
            value = known.get(atom)
            if value is None:
                value = known[atom] = _atom_value(atom, bindings, checked, known)
            product = product * value
        if isinstance(product, int):
            number += coefficient * product
        else:  # canonicalise the whole sum once: the form of a part may differ
            rest = _poly.add(rest, as_poly(product), coefficient)
    return as_dim(_poly.add(rest, {(): number})) if rest else number


def _atom_value(atom: Atom, bindings: Mapping[str, DimLike], checked: bool, known: dict[Atom, DimLike]) -> DimLike:
    if atom.kind == "var":
        value = _size(bindings[atom.name]) if atom.name in bindings else None
        if value is None:
            if not checked:
                return _dim({(atom,): 1})
            raise ArgumentError(
                f"size {atom.name!r} has no value; the bindings have {sorted(bindings)}; bind it too",
                name=atom.name,
            )
        if isinstance(value, int) and not ((atom.lower or 0) <= value and (atom.upper is None or value <= atom.upper)):
            raise ShapeError(
                f"size {atom.name!r} is {value}, outside its bounds "
                f"[{atom.lower}, {'...' if atom.upper is None else atom.upper}]; "
                "declare it with wider bounds, or pass another size",
                name=atom.name,
                value=value,
            )
        return value
    args = [_value(arg, bindings, checked, known) for arg in atom.args]
    if atom.kind != "floordiv":
        return _extremum(atom.kind, tuple(args))
    if args[1] == 0:
        raise ShapeError(
            f"size {args[0]} is divided by {atom.args[1]}, which is zero here; pass other sizes",
            bindings=dict(bindings),
        )
    return floordiv(args[0], args[1])
