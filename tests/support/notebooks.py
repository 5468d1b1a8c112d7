"""Write each tutorial as a Jupyter notebook beside its page in the built site; ``python3 dev docs`` calls it."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown_blocks import FENCE
from workspace import ROOT

TUTORIALS = ROOT / "docs" / "tutorials"
IMAGE = re.compile(r"^!\[[^\]]*\]\([^)]*\)$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")


def _parts(page: str) -> Iterator[tuple[str, str]]:
    """The blocks of a page and the text between them, with the kind of cell of each."""
    end = 0
    for block in FENCE.finditer(page):
        yield "markdown", LINK.sub(r"\1", IMAGE.sub("", page[end : block.start()]))
        yield "code", block["code"]
        end = block.end()
    yield "markdown", LINK.sub(r"\1", IMAGE.sub("", page[end:]))


def _cell(kind: str, number: int, source: str) -> dict[str, Any]:
    more: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source, **more}


def notebook(page: str) -> dict[str, Any]:
    """A page as a notebook in format 4.5: blocks become code cells, which draw the figures themselves.

    Links to other pages become plain text, because a notebook has left the site.
    """
    parts = [(kind, source.strip("\n")) for kind, source in _parts(page) if source.strip()]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [_cell(kind, number, source) for number, (kind, source) in enumerate(parts)]
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def names() -> list[str]:
    """The tutorials."""
    return sorted(path.stem for path in TUTORIALS.glob("*.md") if path.stem != "index")


def main(site: Path) -> None:
    for name in names():
        text = json.dumps(notebook((TUTORIALS / f"{name}.md").read_text(encoding="utf-8")), indent=1)
        (site / "tutorials" / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
