"""Cards for notebooks and pages for browsers: headings, tables, and parts that open when they are clicked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from tenferro_tensor.markup._elements import Markup, element, joined

RULES: Final = {
    "": "font:13px/1.45 system-ui,sans-serif;overflow-x:auto",
    " table": "border-collapse:collapse;border:0;margin:6px 0;display:table;width:auto",
    " :is(table,pre,code)": "font-family:ui-monospace,monospace;font-size:12px",
    " pre": "margin:4px 0;background:none;color:inherit;white-space:pre",
    " code": "background:none;color:inherit;padding:0",
    " :is(td,th)": "padding:1px 9px;text-align:left;vertical-align:top;border:0;white-space:nowrap",
    " th": "border-bottom:1px solid #88888888;font-weight:600",
    " :is(.n,.n td)": "text-align:right",
    " .q": "opacity:.7",
    " .w": "white-space:pre-wrap",
    " summary": "cursor:pointer",
    " svg": "max-width:none;display:block;margin:6px 0",
    " svg text": "fill:currentColor;font:11px system-ui,sans-serif",
    " svg g:hover>rect": "stroke-width:2.5",
}
"""Rules for the contents of a `card` by selector; they do not affect the rest of the page."""

STYLE: Final = Markup("".join([f".tenferro.tenferro{below}{{{rule}}}" for below, rule in RULES.items()]))
"""The rules as text. The doubled class outranks the rules of notebooks for tables."""


def card(head: object, *parts: object) -> Markup:
    """A value as a notebook shows it: a heading and further parts.

    Args:
        head: the heading.
        parts: markup or text.

    Returns:
        An element that includes its style rules.
    """
    return element("div", element("style", STYLE), element("div", head), *parts, class_="tenferro")


def table(head: Sequence[object], rows: Iterable[Sequence[object]], right: Collection[int] = ()) -> Markup:
    """A table with column titles.

    Args:
        head: titles; empty for a table without titles.
        rows: cells of each row.
        right: indices of right-aligned columns.

    Returns:
        The table.
    """

    def row(tag: str, cells: Sequence[object]) -> Markup:
        return element("tr", *[element(tag, c, class_="n" if i in right else None) for i, c in enumerate(cells)])

    return element("table", row("th", head) if head else "", *[row("td", cells) for cells in rows])


def details(summary: object, *parts: object, open_: bool = False) -> Markup:
    """Parts that are shown when their summary is clicked.

    Args:
        summary: the part that is always shown.
        parts: markup or text.
        open_: show the parts initially.

    Returns:
        The element.
    """
    return element("details", element("summary", summary), *parts, open="" if open_ else None)


def preformatted(text: str) -> Markup:
    """Text with its own line breaks.

    Args:
        text: the text.

    Returns:
        The element.
    """
    return element("pre", text)


def page(title: str, *parts: object, script: str = "") -> str:
    """A self-contained page, light or dark by the reader's preference.

    Args:
        title: title of the page.
        parts: contents.
        script: JavaScript that runs at the end; it is not escaped, so it must be constant.

    Returns:
        The text of an HTML file.
    """
    style = ":root{color-scheme:light dark}body{margin:20px}h1{font:600 18px system-ui,sans-serif}"
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(style)),
    ]
    body = [*parts, *([element("script", Markup(script))] if script else [])]
    whole = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{joined([whole])}\n"


def aligned(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Rows of text as lines with aligned columns.

    Args:
        rows: cells, the same number in each row.
        right: columns that end at the same place, as numbers do.

    Returns:
        The lines.

    >>> print(aligned([("sin", "12"), ("matmul", "3")], frozenset({1})))
    sin     12
    matmul   3
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
