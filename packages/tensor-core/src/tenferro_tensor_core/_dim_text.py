"""Symbolic sizes as text: for people, as Python source, and as canonical keys."""

from collections.abc import Mapping
from typing import Any

from ._poly import Atom


def text(d: Any, names: Mapping[str, str] | None = None) -> str:
    """Write a size; without `names`, variables appear with their bounds (the canonical key)."""
    if isinstance(d, int):
        return str(d)
    out = ""
    for monomial, coefficient in d.terms:
        factors = [_atom_text(atom, names) for atom in monomial]
        alone = len(factors) == 1 and coefficient == 1
        if not alone:
            factors = [f"({f})" if atom.kind == "floordiv" else f for f, atom in zip(factors, monomial)]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        out += f" {sign} {'*'.join(factors)}" if out else f"{sign * (coefficient < 0)}{'*'.join(factors)}"
    return out


def _atom_text(atom: Atom, names: Mapping[str, str] | None) -> str:
    if atom.kind == "var":
        return atom.key if names is None else names.get(atom.name, atom.name)
    if atom.kind == "floordiv":
        a, b = (text(arg, names) for arg in atom.args)
        return f"{_operand(a)}//{_operand(b)}"
    return f"{atom.kind}({', '.join(text(arg, names) for arg in atom.args)})"


def _operand(written: str) -> str:
    return written if written.isidentifier() or written.isdecimal() else f"({written})"
