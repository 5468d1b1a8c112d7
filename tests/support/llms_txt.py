"""Write llms.txt, the list of pages with one line each, and llms-full.txt, the text of all pages, into the built site.

``python3 dev docs`` calls it with the folder of the site; the format is that of llmstxt.org.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from workspace import ROOT

DOCS = ROOT / "docs"
NAVIGATION = ROOT / "mkdocs.yml"
ENTRY = re.compile(r"^(?P<indent> +)- (?:(?P<title>[^:\n]+):(?: |$))?(?P<page>\S+\.md)?$", re.MULTILINE)
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
PARAGRAPH = re.compile(r"^(?![#<!|:-])\S.*(?:\n(?![#<]).+)*", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])")


def navigation(text: str) -> Iterator[tuple[str, str]]:
    """The section at the top level and the file of every page, in the order of the site."""
    section = ""
    for entry in ENTRY.finditer(text, text.index("\nnav:\n")):
        if entry["page"]:
            yield section, entry["page"]
        elif entry["indent"] == "  ":
            section = entry["title"]


def title(text: str) -> str:
    """The title of a page."""
    found = TITLE.search(text)
    assert found is not None
    return found[1].replace("`", "")


def summary(text: str) -> str:
    """The first sentence of a page, without links; empty where the page begins otherwise."""
    body = FRONT_MATTER.sub("", text)
    found = PARAGRAPH.search(re.sub(r"^(```.*?^```|<!--.*?-->)$", "", body, flags=re.DOTALL | re.MULTILINE))
    words = " ".join(LINK.sub(r"\1", found[0]).split()) if found else ""
    return re.split(r"(?<=[.]) ", words, maxsplit=1)[0].rstrip(":")


def listing() -> str:
    """The text of llms.txt."""
    text = NAVIGATION.read_text(encoding="utf-8")
    pages = [(section, page, (DOCS / page).read_text(encoding="utf-8")) for section, page in navigation(text)]
    lines = [f"# {title(pages[0][2])}", "", f"> {summary(pages[0][2])}"]
    for number, (section, page, body) in enumerate(pages):
        if number == 0 or section != pages[number - 1][0]:
            lines += ["", f"## {section}", ""]
        line = summary(body)
        lines.append(f"- [{title(body)}]({page.removesuffix('.md')}.html){': ' * bool(line)}{line}")
    return "\n".join(lines) + "\n"


def full() -> str:
    """The text of llms-full.txt."""
    text = NAVIGATION.read_text(encoding="utf-8")
    pages = [(DOCS / page).read_text(encoding="utf-8") for _, page in navigation(text)]
    return "\n\n".join(FRONT_MATTER.sub("", page).strip() for page in pages) + "\n"


if __name__ == "__main__":
    site = Path(sys.argv[1])
    (site / "llms.txt").write_text(listing(), encoding="utf-8")
    (site / "llms-full.txt").write_text(full(), encoding="utf-8")
