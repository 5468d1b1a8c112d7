"""Tables for people: columns in line, bytes and operations in readable units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_STEP: Final = 1000.0


def aligned(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Rows of text as lines, columns in line; those in `right` to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def readable(n: Any, unit: str = "") -> str:
    """A count with a prefix, ``1.5 kB``; a symbolic one as it is, ``?`` where it is unknown.

    >>> readable(1536, "B"), readable(12), readable(3.2e9, "flop"), readable(None)
    ('1.54 kB', '12', '3.2 Gflop', '?')
    """
    if n is None:
        return "?"
    if not isinstance(n, (int, float)):
        return f"{n} {unit}".rstrip()
    value, prefixes = float(n), iter(("", "k", "M", "G", "T", "P"))
    prefix = next(prefixes)
    while abs(value) >= _STEP and prefix != "P":
        value, prefix = value / _STEP, next(prefixes)
    return f"{value:.3g} {prefix}{unit}".rstrip()
