"""Pictures in SVG: inside a card they take the colour of its text, files have their own style."""

from __future__ import annotations

from typing import Final

from tenferro_tensor.markup._elements import COLOURS, Markup, element

FILE_STYLE: Final = Markup(
    "svg{color:#808488}text{fill:currentColor;font:11px system-ui,sans-serif}"
    ".q{opacity:.9}g:hover>rect{stroke-width:2.5}"
)
"""Style of files: a grey that is readable on white and on black, as an image does not know the page around it."""


def picture(width: float, height: float, *children: object, label: str = "") -> Markup:
    """An SVG drawing.

    Args:
        width: width in pixels.
        height: height in pixels.
        children: SVG elements.
        label: description of the drawing.

    Returns:
        The element.
    """
    w, h = round(width), round(height)
    size: dict[str, object] = {"width": w, "height": h, "viewBox": f"0 0 {w} {h}"}
    return element("svg", *children, xmlns="http://www.w3.org/2000/svg", **size, role="img", aria_label=label or None)


def standalone(drawing: str) -> str:
    """A drawing as the contents of an SVG file.

    Args:
        drawing: result of `picture`.

    Returns:
        The drawing with its style rules.
    """
    head, sign, rest = drawing.partition(">")
    return f"{head}{sign}{element('style', FILE_STYLE)}{rest}\n"


def bar(share: float, colour: str = "blue", width: int = 80) -> Markup:
    """A share of a whole as a bar in a line of text.

    Args:
        share: number between 0 and 1.
        colour: key of `COLOURS`.
        width: width of the whole in pixels.

    Returns:
        The element.
    """
    filled = f"display:inline-block;height:9px;background:{COLOURS[colour]}99;width:{share * width:.1f}px"
    style = f"display:inline-block;width:{width}px"
    return element("span", element("span", style=filled), style=style, title=f"{share:.1%}")
