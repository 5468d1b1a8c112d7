"""HTML and SVG under test: tags close, and nothing comes from elsewhere or runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser

Attributes = list[tuple[str, str | None]]


class Page(HTMLParser):
    """Checks that tags close, and collects them.

    Attributes:
        seen: tags with their attributes.
        text: what stands between them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(text: str) -> Page:
    """The tags of a page or of a part of one, all of which close."""
    found = Page()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def alone(text: str) -> Page:
    """The same, of markup that neither runs nor loads anything."""
    found = page(text)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in found.seen}
    attributes = [pair for _, attrs in found.seen for pair in attrs.items()]
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert all((value or "").startswith("data:image/png;") for name, value in attributes if name in ("src", "href"))
    assert re.findall(r"url\(|@import", text) == []
    return found
