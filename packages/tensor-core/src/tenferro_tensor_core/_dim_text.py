"""Symbolic sizes as text: for people, as Python source, and as canonical keys.

Sizes share subexpressions, as `max(1, d) - max(2, d)` shares d, so that the expanded text of a size can grow
exponentially. Keys therefore name nested atoms by their keys, and long ones by a digest; text for people elides inner
parts; source computes a shared part once.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from ._poly import Atom
from .forks import importing

KEY_MAX: Final = 200
"""Longest key in characters; longer ones are replaced by a digest."""

MAX_SHOWN_ATOMS: Final = 60
"""Largest number of atoms, with repetitions, of a size that is shown in full."""

MAX_REPEATED_ATOMS: Final = 60
"""Largest number of atoms, with repetitions, of a size whose source repeats shared parts."""


def key_of(d: Any) -> str:
    """Return the canonical key of a size; variables appear with their bounds."""
    return str(d) if isinstance(d, int) else _sum(d, lambda atom: atom.key)


def key_of_atom(kind: str, *args: Any) -> str:
    """Return the canonical key of a quotient, a minimum or a maximum."""
    written = list(map(key_of, args))
    key = f"({written[0]})//({written[1]})" if kind == "floordiv" else f"{kind}({', '.join(written)})"
    if len(key) <= KEY_MAX:
        return key
    with importing():  # deferred: long keys are rare
        from hashlib import blake2b
    return f"{kind}:{blake2b(key.encode(), digest_size=16).hexdigest()}"


def shown(d: Any) -> str:
    """Return the text for people; in a long one, the longest parts are elided."""
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
    """Return a Python expression; `names` maps variables to their Python names."""
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
    """The atoms that occur more than once in a size."""
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
