"""Python blocks of a Markdown page, run as one program."""

import contextlib
import difflib
import io
import re
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(?:python|\{\.python \.(?P<library>\w+)\})\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"#> ?(.*)$", re.MULTILINE)


def program(page: Path, library: str | None = None) -> str:
    """All `python` blocks in order, at the lines where they stand, so that a traceback points into the page.

    Blocks marked ``{.python .library}`` are for those who have a library that the workspace does not install.
    """
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    for block in FENCE.finditer(text):
        if block["library"] not in (None, library):
            continue
        first = text.count("\n", 0, block.start("code"))
        code = block["code"].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines).rstrip()


def run(page: Path, library: str | None = None) -> dict[str, Any]:
    """Execute the page; where it says `#> text`, the lines printed are exactly these texts, in order.

    Args:
        page: the page.
        library: run the blocks that are for this library, too.

    Returns:
        What the page has defined.
    """
    code, names = program(page, library), {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(page), "exec"), names)
    seen, expected = printed.getvalue().splitlines(), EXPECTED.findall(code)
    assert seen == expected, "\n".join(difflib.unified_diff(expected, seen, page.name, "printed", lineterm=""))
    return names
