"""`element`: the only function that writes tags; it escapes text that is not markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, Final

COLOURS: Final = {
    "blue": "#0072b2", "orange": "#e69f00", "green": "#009e73", "sky": "#56b4e9", "red": "#d55e00", "purple": "#cc79a7",
    "grey": "#888888",
}  # fmt: skip
"""Okabe and Ito's colours (2008), which colour-blind readers tell apart; drawn translucently or as lines."""

EMPTY: Final = frozenset({"br", "img", "meta"})
"""Tags of HTML that are never closed."""


class Markup(str):
    """Text that is HTML or SVG; any other text is escaped where it is put into an element."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """A tag with its attributes around its children; text among them is escaped.

    Args:
        tag: name of the tag.
        children: `Markup`, or other values as text.
        attributes: a trailing underscore is dropped, others become hyphens; ``None`` leaves the attribute out.

    Returns:
        The element, which is not escaped again.

    >>> element("b", "1 < 2", class_="x", stroke_width=2)
    '<b class="x" stroke-width="2">1 &lt; 2</b>'
    """
    given = "".join([f' {_name(k)}="{escape(_value(v))}"' for k, v in attributes.items() if v is not None])
    inner = joined(children)
    return Markup(f"<{tag}{given}>" if tag in EMPTY else f"<{tag}{given}>{inner}</{tag}>")


def joined(children: Iterable[object]) -> Markup:
    """Concatenated children, escaped unless they are markup.

    Args:
        children: `Markup`, or other values as text.

    Returns:
        The markup.
    """
    return Markup("".join([child if isinstance(child, Markup) else escape(str(child)) for child in children]))


def _name(attribute: str) -> str:
    return attribute.rstrip("_").replace("_", "-")


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
