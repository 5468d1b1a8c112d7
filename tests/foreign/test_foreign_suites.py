"""A small part of ``python3 dev foreign``: suites that take seconds; and how the outcomes are judged."""

import fnmatch
import tomllib

import foreign_run
from foreign_suites import OWN, SUITES, Suite

SMALL = "scipy.linalg"
"""The suite that runs here."""


def test_a_suite_passes() -> None:
    suite = next(suite for suite in SUITES if suite.name == SMALL)
    outcomes, _ = foreign_run.run(suite, OWN)
    assert len(outcomes) > 10 and foreign_run.judged(suite, outcomes) == []


def test_failures_are_compared_with_the_table() -> None:
    suite = Suite("scipy.special", ())
    entries = foreign_run.known("scipy.special")
    assert entries, "the case needs a suite with known failures"
    first = entries[0]["tests"][0]
    seen = {first.replace("*", "x"): ("failed", "Error: one"), "new[a]": ("failed", "Error: two"), "b": ("passed", "")}
    wrong = foreign_run.judged(suite, seen)
    assert "scipy.special: new[a] fails: Error: two" in wrong
    assert not any(first in line for line in wrong)
    assert len([line for line in wrong if "is stale" in line]) == sum(len(e["tests"]) for e in entries) - 1
    assert foreign_run.line(seen) == "1 / 2 / 0"


def test_every_entry_of_the_table_has_a_reason_and_a_suite() -> None:
    table = tomllib.loads(foreign_run.KNOWN.read_text(encoding="utf-8"))
    names = {suite.name for suite in SUITES}
    for name, entries in table.items():
        assert name in names
        for entry in entries:
            assert len(entry["reason"]) > 20 and entry["whose"] in ("ours", "theirs") and entry["tests"]
            assert not any(fnmatch.fnmatch(a, b) for a in entry["tests"] for b in entry["tests"] if a != b)
