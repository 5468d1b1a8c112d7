"""Find what a page of the built site would load from another host: scripts, styles, fonts, images, frames.

``python3 dev docs`` calls it with the folder of the site. Links that a reader clicks are no requests.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

LOADED: Final = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
NAMED: Final = frozenset(("canonical", "alternate", "prev", "next", "edit", "describedby"))
"""Relations of a `link` that a browser does not load."""
FOREIGN: Final = re.compile(r"(?:https?:)?//[\w.-]+", re.IGNORECASE)
IN_STYLE: Final = re.compile(r"(?:url\(|@import\s+)\s*[\"']?((?:https?:)?//[\w.-]+)", re.IGNORECASE)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.found += IN_STYLE.findall(values.get("style", ""))
        if tag == "link" and set(values.get("rel", "").split()) <= NAMED:
            return
        for name in LOADED.get(tag, ()):
            if FOREIGN.match(values.get(name, "").strip()):
                self.found.append(values[name])


def of_page(text: str) -> list[str]:
    """The foreign addresses that a page of HTML or an SVG loads."""
    page = _Page()
    page.feed(text)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
    return page.found + [address for style in styles for address in IN_STYLE.findall(style)]


def of_site(site: Path) -> Iterator[tuple[Path, str]]:
    """The files of a site and the foreign addresses that each loads."""
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".svg"):
            yield from ((path, address) for address in of_page(path.read_text(encoding="utf-8")))
        elif path.suffix == ".css":
            yield from ((path, address) for address in IN_STYLE.findall(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    found = list(of_site(Path(sys.argv[1])))
    for file, where in found:
        print(f"{file}: loads {where}")
    sys.exit(bool(found))
