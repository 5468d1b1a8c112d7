"""The cards of reports, and their tables: the same rows as aligned text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tenferro_tensor import library
from tenferro_tensor.markup import Markup, aligned, bar, card, element, joined, preformatted, table

MAX_HTML_ROWS: Final = 120
"""Largest number of rows of a table in a notebook; rows in the middle are omitted."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of text with column titles and lines below.

    Attributes:
        head: titles of the columns.
        rows: cells.
        right: columns of numbers.
        foot: lines of text below.
    """

    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = frozenset()
    foot: str = ""

    def text(self) -> str:
        """The table as aligned text, for a terminal."""
        return "\n".join([aligned([self.head, *self.rows], self.right), *([self.foot] if self.foot else [])])

    def html(self, shares: Sequence[float | None] = ()) -> Markup:
        """The table as HTML; shares of a total are bars at the end of rows."""
        rows: list[Sequence[object]] = [[_indented(cell) for cell in row] for row in self.rows]
        if shares:
            rows = [[*row, "" if share is None else bar(share)] for row, share in zip(rows, shares, strict=True)]
        left_out = len(rows) - MAX_HTML_ROWS
        if left_out > 0:
            half = MAX_HTML_ROWS // 2
            rows = [*rows[:half], ["…", f"{left_out} more rows", *[""] * (len(rows[0]) - 2)], *rows[-half:]]
        head = (*self.head, "") if shares else self.head
        return joined([table(head, rows, self.right), element("div", self.foot, class_="w")])

    def rich(self, title: str) -> Any:
        """The same as a table of rich."""
        text, tables, group = library("rich.text").Text, library("rich.table"), library("rich.console").Group
        drawn = tables.Table(title=title, title_justify="left", box=None, pad_edge=False)
        for i, name in enumerate(self.head):
            drawn.add_column(name, justify="right" if i in self.right else "left", no_wrap=i in self.right)
        for row in self.rows:
            drawn.add_row(*[text(cell) for cell in row])
        return group(drawn, text(self.foot))


class Report:
    """A report that prints as text, and that a notebook shows as a card."""

    __slots__ = ()

    @property
    def _heading(self) -> str:
        raise NotImplementedError

    def _parts(self) -> Sequence[object]:
        """What stands below the heading: by default the text."""
        return (preformatted(str(self)),)

    def _repr_html_(self) -> str:
        return card(element("b", self._heading), *self._parts())


class Tabular(Report):
    """A report that is a table: it prints as text, and shows the same rows in a notebook."""

    __slots__ = ()

    def _table(self) -> TextTable:
        raise NotImplementedError

    def _parts(self) -> Sequence[object]:
        return (self._table().html(),)

    def __repr__(self) -> str:
        return self._table().text()

    def __rich__(self) -> Any:
        """The report as rich draws it, which calls this."""
        return self._table().rich(self._heading)


def text_card(head: str, text: str) -> str:
    """HTML of a report that is text.

    Args:
        head: its heading.
        text: the report.

    Returns:
        HTML.
    """
    return card(element("b", head), preformatted(text))


def _indented(cell: str) -> object:
    """A cell with visible leading spaces, which indent the steps of a body."""
    depth = len(cell) - len(cell.lstrip(" "))
    return element("span", cell.lstrip(" "), style=f"padding-left:{depth}ch") if depth else cell
