"""Symbolic sizes as text: for people, as Python source, and as canonical keys.

Sizes share their parts, as `max(1, d) - max(2, d)` shares d: written out, one that was made in many steps would be
longer than any memory. Keys name the atoms inside by their keys, long ones by a digest; people see the outer parts; and
source computes a shared part once.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from ._poly import Atom
from .forks import importing

KEY_MAX: Final = 200
"""Length in characters of the longest key that is written out; longer ones are replaced by a digest."""

MAX_SHOWN_ATOMS: Final = 60
"""Number of atoms, each counted as often as it is written, of the longest size that people are shown in full."""

MAX_REPEATED_ATOMS: Final = 60
"""Number of atoms, counted in this way, of the longest size whose source repeats shared parts."""


def key_of(d: Any) -> str:
    """Return the canonical key of a size; variables stand in it with their bounds."""
    return str(d) if isinstance(d, int) else _sum(d, lambda atom: atom.key)


def key_of_atom(kind: str, *args: Any) -> str:
    """Return the canonical key of a quotient, a minimum or a maximum."""
    written = list(map(key_of, args))
    key = f"({written[0]})//({written[1]})" if kind == "floordiv" else f"{kind}({', '.join(written)})"
    if len(key) <= KEY_MAX:
        return key
    with importing():  # long keys are seldom
        from hashlib import blake2b
    return f"{kind}:{blake2b(key.encode(), digest_size=16).hexdigest()}"


def shown(d: Any) -> str:
    """Return the text for people: of a long one, the parts that make it long are left out."""
    if isinstance(d, int):
        return str(d)
    long = _weight(d) > MAX_SHOWN_ATOMS

    def of_atom(atom: Atom) -> str:
        if atom.kind == "var":
            return atom.name
        if long and atom.weight > MAX_SHOWN_ATOMS // 4:
            return "..." if atom.kind == "floordiv" else f"{atom.kind}(...)"
        return _written(atom, shown)

    return _sum(d, of_atom)


def source(d: Any, names: Mapping[str, str]) -> str:
    """Return a Python expression, variables written as `names` says."""
    shared = _shared(d) if _weight(d) > MAX_REPEATED_ATOMS else frozenset()
    assigned: dict[Atom, str] = {}

    def of(d: Any) -> str:
        return str(d) if isinstance(d, int) else _sum(d, of_atom)

    def of_atom(atom: Atom) -> str:
        if atom.kind == "var":
            return names.get(atom.name, atom.name)
        if atom in assigned:
            return assigned[atom]
        text = _written(atom, of)
        if atom in shared:
            name = assigned[atom] = f"shared_{len(assigned)}"
            return f"({name} := {text})"
        return text

    return of(d)


def _weight(d: Any) -> int:
    return 0 if isinstance(d, int) else sum(atom.weight for monomial, _ in d.terms for atom in monomial)


def _shared(d: Any) -> frozenset[Atom]:
    """The atoms that occur in more than one place of a size."""
    atoms = [atom for monomial, _ in d.terms for atom in monomial]
    args = [arg for atom in d.atoms() for arg in atom.args if not isinstance(arg, int)]
    atoms += [atom for arg in args for monomial, _ in arg.terms for atom in monomial]
    return frozenset(atom for atom, n in Counter(atoms).items() if n > 1)


def _sum(d: Any, of_atom: Callable[[Atom], str]) -> str:
    out = ""
    for monomial, coefficient in d.terms:
        factors = [of_atom(atom) for atom in monomial]
        alone = len(factors) == 1 and coefficient == 1
        if not alone:
            factors = [f"({f})" if atom.kind == "floordiv" else f for f, atom in zip(factors, monomial)]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        out += f" {sign} {'*'.join(factors)}" if out else f"{sign * (coefficient < 0)}{'*'.join(factors)}"
    return out


def _written(atom: Atom, of: Callable[[Any], str]) -> str:
    args = [of(arg) for arg in atom.args]
    if atom.kind == "floordiv":
        a, b = (text if text.isidentifier() or text.isdecimal() else f"({text})" for text in args)
        return f"{a}//{b}"
    return f"{atom.kind}({', '.join(args)})"
