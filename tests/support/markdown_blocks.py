"""Python blocks of a Markdown page, run as one program."""

import contextlib
import difflib
import io
import re
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"#> ?(.*)$", re.MULTILINE)


def program(page: Path) -> str:
    """All `python` blocks in order, at the lines where they stand, so that a traceback points into the page."""
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    for block in FENCE.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines).rstrip()


def run(page: Path) -> dict[str, Any]:
    """Execute the page; where it says `#> text`, the lines printed are exactly these texts, in order.

    Returns:
        What the page has defined.
    """
    code, names = program(page), {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(page), "exec"), names)
    seen, expected = printed.getvalue().splitlines(), EXPECTED.findall(code)
    assert seen == expected, "\n".join(difflib.unified_diff(expected, seen, page.name, "printed", lineterm=""))
    return names
