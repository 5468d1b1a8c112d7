"""Values in notebooks: class, dtype, shape and device, elements as a table, and large matrices also as an image."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_tensor.markup._document import card, preformatted
from tenferro_tensor.markup._elements import Markup, element, joined
from tenferro_tensor.markup._pixels import pixels

ROWS: Final = 12
COLUMNS: Final = 8
"""Maximum numbers of rows and columns shown; the middle of larger arrays is left out."""

FEW: Final = 60
"""Maximum size of an array of more than two axes whose elements are all shown."""


LARGE_BYTES: Final = 100_000
"""Smallest number of bytes that is shown."""


def html_of(x: Any) -> Markup:
    """A value as HTML.

    Args:
        x: a tensor of any level.

    Returns:
        A card with the elements, or the first and last ones of a large value.
    """
    if x.opaque or x.spec.symbolic:
        note = "no elements while a program is recorded or lanes are mapped"
        return card(_head(x), element("div", note, class_="q"))
    elements = x._concrete()
    if not 1 <= elements.ndim <= 2 or not elements.size:
        text = np.array2string(elements, precision=6, max_line_width=100, threshold=FEW, edgeitems=2)
        return card(_head(x), preformatted(text))
    rows = elements if elements.ndim == 2 else elements[None]
    shown = element("table", *[_row(row, rows.shape[1]) for row in _cut(rows, ROWS)], class_="n")
    if min(rows.shape) == 1 or max(rows.shape) <= ROWS:
        return card(_head(x), shown)
    return card(_head(x), element("div", shown, pixels(rows), style="display:flex;gap:14px"))


def _head(x: Any) -> Markup:
    facts = [element("code", type(x).__name__), element("b", repr(x.spec)), f"on {x.device}", *_more(x)]
    return joined([part for fact in facts for part in (fact, " ")][:-1])


def _more(x: Any) -> list[str]:
    """The size of a large value in bytes, and whether operations on it are recorded."""
    size = x.spec.size * x.spec.dtype.itemsize
    large = isinstance(size, int) and size >= LARGE_BYTES
    return [f"· {readable(size, 'B')}"] * large + ["· requires grad"] * bool(getattr(x, "requires_grad", False))


def _cut(items: Any, most: int) -> list[Any]:
    """The items, with ``None`` in place of the middle of a long sequence."""
    return list(items) if len(items) <= most else [*items[: most // 2], None, *items[-(most // 2) :]]


def _row(row: Any, columns: int) -> Markup:
    cells = [None] * min(columns, COLUMNS + 1) if row is None else _cut(row, COLUMNS)
    return element("tr", *[element("td", _cell(number)) for number in cells])


def _cell(number: Any) -> str:
    if number is None:
        return "…"
    return f"{number:.6g}" if isinstance(number, (np.floating, np.complexfloating)) else str(number)


def readable(n: Any, unit: str = "") -> str:
    """A count with a unit prefix, ``1.5 kB``; symbolic counts unchanged, ``?`` if unknown.

    Args:
        n: a number, a symbolic size, or ``None``.
        unit: put behind the prefix.

    Returns:
        Text of three digits.

    >>> readable(1536, "B"), readable(12), readable(3.2e9, "flop"), readable(None)
    ('1.54 kB', '12', '3.2 Gflop', '?')
    """
    if n is None:
        return "?"
    if not isinstance(n, (int, float)):
        return f"{n} {unit}".rstrip()
    value, prefixes = float(n), iter(("", "k", "M", "G", "T", "P"))
    prefix = next(prefixes)
    while abs(value) >= 1000.0 and prefix != "P":
        value, prefix = value / 1000.0, next(prefixes)
    return f"{value:.3g} {prefix}{unit}".rstrip()
