"""HTML and SVG for notebooks and pages: what `_repr_html_` and the drawings of every package are written with.

Everything is text of its own: no script, no reference to another host. Colours are translucent or those of the text
around them, so that one form fits light and dark notebooks. `aligned` is the form of a table for terminals.
"""

from tenferro_tensor.markup._document import aligned, card, details, page, preformatted, table
from tenferro_tensor.markup._elements import COLOURS, Markup, element, joined
from tenferro_tensor.markup._pictures import bar, picture, standalone
from tenferro_tensor.markup._pixels import pattern, pixels
from tenferro_tensor.markup._values import html_of, readable

__all__ = [
    "COLOURS",
    "Markup",
    "aligned",
    "bar",
    "card",
    "details",
    "element",
    "html_of",
    "joined",
    "page",
    "pattern",
    "picture",
    "pixels",
    "preformatted",
    "readable",
    "standalone",
    "table",
]


def __dir__() -> list[str]:
    return __all__.copy()
