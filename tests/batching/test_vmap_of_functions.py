"""`vmap` of every public function and primitive, alone and with other transforms, as the page on it says."""

from __future__ import annotations

from types import ModuleType

import pytest

import tenferro_einsum
import tenferro_fft
import tenferro_linalg
import tenferro_runtime
from thorough import THOROUGH
from vmap_calls import CALLS, NO_ARRAYS, OF_DATA
from vmap_table import COLUMNS, HEAD, PAGE, SHORT, row

NAMESPACES = (tenferro_runtime, tenferro_linalg, tenferro_fft, tenferro_einsum)
WRITTEN = PAGE.read_text(encoding="utf-8")


def sections() -> dict[str, list[str]]:
    """The rows of the page by namespace."""
    found: dict[str, list[str]] = {}
    for part in WRITTEN.split("\n## ")[1:]:
        title, *lines = part.splitlines()
        found[title] = [line for line in lines if line.startswith("| `")]
    return found


def left_out(name: str, written: str) -> dict[str, list[str]]:
    """By column, a dtype that is not tried where all of them are on the page: calls and columns take turns.

    Every call meets every column and every dtype, and every column meets every dtype.
    """
    cells = zip(COLUMNS, written.split(" | ")[1:-1], strict=True)
    turn = [*CALLS].index(name)
    return {
        column: [] if THOROUGH or cell.split(", ") != [*SHORT.values()] else [[*SHORT.values()][(turn + at) % 2]]
        for at, (column, cell) in enumerate(cells)
    }


@pytest.mark.parametrize("name", CALLS)
def test_it_agrees_with_the_loop_over_lanes_as_the_page_says(name: str) -> None:
    namespace, _, shown = name.partition(".")
    (written,) = [line for line in sections()[namespace] if line.startswith(f"| `{shown}` |")]
    assert row(name, left_out(name, written)) == written, (
        "write the page anew: python3 dev run tests/support/vmap_table.py"
    )


def another_spelling(namespace: ModuleType, name: str) -> bool:
    """Whether a name is a second one of a function that the namespace has under its own name."""
    found = getattr(namespace, name)
    own = getattr(found, "__name__", name)
    return own != name and getattr(namespace, own, None) is found


def test_every_public_function_is_on_the_page() -> None:
    public = {
        f"{m.__name__}.{n}" for m in NAMESPACES for n in m.__all__
        if callable(getattr(m, n)) and not isinstance(getattr(m, n), type) and not another_spelling(m, n)
    }  # fmt: skip
    called = {name.partition(",")[0] for name in CALLS if not name.startswith("primitives.")}
    methods = {name for name in called if ".Tensor." in name}
    assert called - methods == public - NO_ARRAYS
    assert public >= NO_ARRAYS
    assert {*CALLS} >= OF_DATA


def test_the_page_has_these_rows_and_no_other() -> None:
    assert WRITTEN.startswith(HEAD)
    rows = [f"{namespace}.{line.split('`')[1]}" for namespace, lines in sections().items() for line in lines]
    assert rows == [*CALLS]
    assert all(line.count("|") == len(COLUMNS) + 3 for lines in sections().values() for line in lines)
