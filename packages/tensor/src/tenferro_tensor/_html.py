"""Values in notebooks: kind, dtype and shape, and the elements of vectors and matrices as a table."""

from __future__ import annotations

from html import escape
from typing import Any, Final

import numpy as np

SHOWN: Final = 12
"""Rows and columns that are shown at most; more are cut in the middle."""


def html_of(x: Any) -> str:
    """A value as HTML."""
    head = f"<code>{escape(type(x).__name__)}</code> <b>{escape(repr(x.spec))}</b> on {escape(str(x.device))}"
    if x.opaque or x.spec.symbolic:
        return f"<div>{head}, no elements while a program is recorded or lanes are mapped</div>"
    elements = x._concrete()
    if not 1 <= elements.ndim <= 2 or not elements.size:
        return f"<div>{head}<pre>{escape(str(elements))}</pre></div>"
    rows = elements if elements.ndim == 2 else elements[None]
    return f"<div>{head}<table>{''.join(map(_row, _cut(list(rows))))}</table></div>"


def _cut(items: list[Any]) -> list[Any]:
    """The items, ``None`` standing for those in the middle where there are too many."""
    return items if len(items) <= SHOWN else [*items[: SHOWN // 2], None, *items[-SHOWN // 2 :]]


def _row(row: Any) -> str:
    cells = _cut(list(row)) if row is not None else [None]
    return f"<tr>{''.join(f'<td>{_cell(c)}</td>' for c in cells)}</tr>"


def _cell(number: Any) -> str:
    if number is None:
        return "…"
    return escape(f"{number:.6g}" if isinstance(number, (np.floating, np.complexfloating)) else str(number))
