"""The table of what every function can do: its rows are those of the functions, and say what happens."""

import pytest

from capability_table import COLUMNS, HEAD, PAGE, cells, grouped, row, simulated_gpu
from thorough import THOROUGH

NAMES = [name for names in grouped().values() for name in names]
WRITTEN = PAGE.read_text(encoding="utf-8")
HINT = "write the page anew: python3 dev run tests/support/capability_table.py"


def test_every_function_has_a_row() -> None:
    assert WRITTEN.startswith(HEAD), HINT
    labels = [line.split("|")[1].strip(" `") for line in WRITTEN.splitlines() if line.startswith("| `")]
    assert labels == [name.removeprefix("tenferro_runtime.") for name in NAMES], HINT


@pytest.mark.parametrize("name", NAMES if THOROUGH else NAMES[::12])
def test_row(name: str) -> None:
    with simulated_gpu():
        assert row(name) in WRITTEN.splitlines(), HINT


def test_cells_that_differ() -> None:
    """The marks are found out: these functions have different ones in every column."""
    with simulated_gpu():
        marks = {name: dict(zip(COLUMNS[1:], cells(f"tenferro_{name}"), strict=True)) for name in (
            "runtime.sum", "runtime.floor", "runtime.argmax", "runtime.unique_values", "linalg.schur", "linalg.ldl",
        )}  # fmt: skip
    assert marks["runtime.sum"] == {"dtypes": "bifc"} | dict.fromkeys(COLUMNS[2:], "✓")
    assert marks["runtime.floor"]["dtypes"] == "bif"
    assert marks["runtime.argmax"]["vjp"] == "–"
    assert (marks["runtime.unique_values"]["traced"], marks["runtime.unique_values"]["vmap"]) == ("✗", "✗")
    assert (marks["linalg.schur"]["CUDA"], marks["linalg.schur"]["XLA"]) == ("✗", "✓")
    assert marks["linalg.ldl"]["XLA"] == "✗"
