"""The suite of `dev bench`: its gate sees a slowdown and nothing else, its rows compute the same everywhere."""

import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from workspace import ROOT

sys.path.append(str(ROOT / "benchmarks"))
gate, page, records, suite = (import_module(f"suite.{name}") for name in ("gate", "page", "records", "rows"))

TOY = """
import pytest


def work(count):
    total = 0
    for i in range(count):
        total += i
    return total


@pytest.mark.parametrize("count", [20_000, 20_800, 20_000], ids=["before", "slower", "again[1]"])
def test_work(count, benchmark):
    work(count)
    benchmark(work, count)
"""


def record(**rows: Any) -> Any:
    return records.Record("12345678", "2026-01-01T12:00", {"python": "3.11.7", "numpy": "2.4.0"}, rows=rows)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="callgrind counts instructions")
def test_the_gate_sees_four_percent_more_work_and_no_noise(tmp_path: Path) -> None:
    module = tmp_path / "test_toy.py"
    module.write_text(TOY)
    found = import_module("suite.counting").counts([], module)
    reference = record(slower={"instructions": found["before"]}, again={"instructions": found["before"]})
    slower, again = gate.changes(reference, {"slower": found["slower"], "again": found["again[1]"]}, {})
    assert slower.rose and not again.rose and not again.fell


@pytest.mark.parametrize(
    ("before", "now", "rose", "fell"),
    [(1e6, 1.029e6, False, False), (1e6, 1.04e6, True, False), (1e6, 0.9e6, False, True), (2000, 2050, False, False)],
)
def test_a_change_within_the_tolerance_passes(before: float, now: float, rose: bool, fell: bool) -> None:
    (change,) = gate.changes(record(a={"instructions": before}), {"a": now, "new": 1.0}, {})
    assert (change.rose, change.fell) == (rose, fell)
    assert gate.table([change]).endswith(f"1 figures compared: {rose:d} rose, {fell:d} fell")


def test_peaks_of_memory_are_compared_as_well() -> None:
    (change,) = gate.changes(record(a={"bytes": {"tenferro": 10**6, "numpy": 1}}), {}, {"a": 2 * 10**6})
    assert change.rose and change.unit == "bytes"


def test_other_versions_make_counts_incomparable() -> None:
    assert gate.differing(record(), {"python": "3.11.9", "numpy": "2.4.0"}) == {}
    assert gate.differing(record(), {"python": "3.12.0", "numpy": "2.4.0"}) == {"python": ("3.11.7", "3.12.0")}


def test_the_suite_has_rows_of_every_group() -> None:
    rows = suite.rows()
    assert len(rows) > 60
    assert {row.group for row in rows} == set(suite.GROUPS) == set(page.GROUP_TITLES)


def test_two_rows_cannot_have_one_name() -> None:
    def add(xp: Any) -> Any:
        """another"""

    add.__module__ = "suite.calls"
    with pytest.raises(ValueError, match="two rows are named 'calls/add'"):
        suite.row()(add)


def test_rows_agree_with_numpy() -> None:
    library = import_module("suite.libraries").library
    libraries = {name: library(name) for name in ("tenferro", "numpy")}
    assert import_module("suite.agreement").check(suite.rows(["calls/", "indexing/"]), libraries) == 0


def test_a_row_that_differs_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    library = import_module("suite.libraries").library
    libraries = {name: library(name) for name in ("tenferro", "numpy")}
    libraries["numpy"].where = lambda mask, x, y: x
    assert import_module("suite.agreement").check(suite.rows(["calls/where"]), libraries) == 1
    assert "calls/where differs from numpy" in capsys.readouterr().out


def test_a_record_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    one = record(**{"calls/add": {"instructions": 5, "us": {"tenferro": 1.0, "numpy": 2.0}}})
    one.save()
    assert records.records() == [one]


def test_the_page_shows_the_records() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(records.records()), "write it: python3 dev bench page"
