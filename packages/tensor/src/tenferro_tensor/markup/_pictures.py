"""Pictures in SVG: inside of a card they take the colour of its text, as files they bring their own."""

from __future__ import annotations

from typing import Final

from tenferro_tensor.markup._elements import COLOURS, Markup, element

FILE_STYLE: Final = Markup(
    "svg{color:#808488}text{fill:currentColor;font:11px system-ui,sans-serif}"
    ".q{opacity:.9}g:hover>rect{stroke-width:2.5}"
)
"""For files: a grey that is read on white and on black, since an image does not see the page around it."""


def picture(width: float, height: float, *children: object, label: str = "") -> Markup:
    """A drawing of this size in pixels.

    Args:
        width: extent to the right.
        height: extent downwards.
        children: elements of SVG.
        label: what it shows, in words.

    Returns:
        The element.
    """
    return element(
        "svg",
        *children,
        xmlns="http://www.w3.org/2000/svg",
        width=round(width),
        height=round(height),
        viewBox=f"0 0 {round(width)} {round(height)}",
        role="img",
        aria_label=label or None,
    )


def standalone(drawing: str) -> str:
    """A drawing as the text of a file.

    Args:
        drawing: an element that `picture` has made.

    Returns:
        The same with rules of its own.
    """
    head, sign, rest = drawing.partition(">")
    return f"{head}{sign}{element('style', FILE_STYLE)}{rest}\n"


def bar(share: float, colour: str = "blue", width: int = 80) -> Markup:
    """A share of a whole as the length of a bar in a line of text.

    Args:
        share: between 0 and 1.
        colour: a name in `COLOURS`.
        width: pixels of the whole.

    Returns:
        The element.
    """
    part = element(
        "span", style=f"display:inline-block;height:9px;background:{COLOURS[colour]}99;width:{share * width:.1f}px"
    )
    return element("span", part, style=f"display:inline-block;width:{width}px", title=f"{share:.1%}")
