"""The rows of tenferro as benchmarks of pytest-codspeed, which tells callgrind where each call begins and ends.

`counting.py` runs this module under callgrind. `SUITE_ROWS` holds the keys of rows, one a line.
"""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest

from suite.libraries import library
from suite.rows import Row, rows

WARM_CALLS = 3
"""Calls after which nothing is compiled any more."""


def chosen() -> list[Row]:
    return [row for row in rows() if row.key in os.environ["SUITE_ROWS"].split("\n")]


@pytest.mark.parametrize("row", chosen(), ids=lambda r: r.key)
def test_row(row: Row, benchmark: Any) -> None:
    if row.kind == "import":
        benchmark(row.make(None))
        return
    xp = library("tenferro")
    call = row.make(xp)
    for _ in range(WARM_CALLS):
        call()
        xp.settle()
    if row.kind == "first":
        xp.forget()
        gc.collect()
    for _ in range(row.repeats if row.kind == "call" else 0):  # the interpreter specialises what runs often
        call()

    def repeated() -> None:
        for _ in range(row.repeats):
            call()

    benchmark(repeated)
