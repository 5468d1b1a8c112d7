"""Figures of the pages: `python3 dev figures` runs the pages that save figures and writes docs/assets/figures.

A page saves a figure as anybody would, `fig.savefig("ising-1.svg")` or `program.draw("heat.svg")`. Here the file goes
into the folder of figures, and matplotlib draws in the style of docs/figures.mplstyle; in tests it draws nothing, and
nothing is written.
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import markdown_blocks
from workspace import ROOT

FIGURES = ROOT / "docs" / "assets" / "figures"
STYLE = ROOT / "docs" / "figures.mplstyle"
LARGEST = 100_000
"""Bytes of a figure: a page should load quickly, and the repository keeps every version of every figure."""


DRAWS = re.compile(r"""\.savefig\(|\.draw\("[^"/]+\.svg""")
"""Code that saves a figure."""


@contextlib.contextmanager
def saved(folder: Path | None = None) -> Iterator[list[str]]:
    """Collect the names of the figures saved within the block.

    Args:
        folder: where to write them; None writes nothing.
    """
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    names: list[str] = []
    save = Figure.savefig

    def savefig(figure: Figure, name: str, **options: Any) -> None:
        names.append(name)
        if folder is not None:
            # Without the date, the same figure is the same file.
            save(figure, folder / name, metadata={"Date": None} if name.endswith(".svg") else None, **options)

    write = Path.write_text

    def write_text(path: Path, text: str, **options: Any) -> int:
        if path.suffix != ".svg" or path.parent != Path("."):
            return write(path, text, **options)
        names.append(path.name)
        return 0 if folder is None else write(folder / path, text, **options)

    style = contextlib.nullcontext() if folder is None else plt.style.context(STYLE)
    with style, mock.patch.object(Figure, "savefig", savefig), mock.patch.object(Path, "write_text", write_text):
        try:
            yield names
        finally:
            plt.close("all")


def main() -> int:
    """Write the figures of all pages, or of those whose names are given."""
    os.environ["MPLBACKEND"] = "agg"
    FIGURES.mkdir(parents=True, exist_ok=True)
    status = 0
    for page in sorted((ROOT / "docs").glob("**/*.md")):
        if not DRAWS.search(markdown_blocks.program(page)) or (sys.argv[1:] and page.stem not in sys.argv[1:]):
            continue
        with saved(FIGURES) as names:
            markdown_blocks.run(page)
        for name in names:
            size = (FIGURES / name).stat().st_size
            status |= size > LARGEST
            print(f"{size / 1000:8.1f} kB  {name}{'  TOO LARGE: simplify it, or save a PNG' * (size > LARGEST)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
