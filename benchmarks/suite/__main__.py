"""Benchmarks over time.

    python3 dev bench gate [TEXT ...]     count instructions, compare with the newest record; status 1 if a row rose
    python3 dev bench record [TEXT ...]   count, measure wall times beside the peers, keep both in benchmarks/results
    python3 dev bench times [TEXT ...]    wall times only, printed and not kept
    python3 dev bench check [TEXT ...]    all libraries compute the same
    python3 dev bench list [TEXT ...]     the rows
    python3 dev bench history COMMIT [TEXT ...]  build an earlier commit below build/history and record its counts
    python3 dev bench page                write docs/benchmarks.md and its figures from the records

A text chooses rows whose key, as in `calls/add`, contains it. Every other word runs the script of that name in
benchmarks, with its options: `python3 dev bench linalg --only svd`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from suite import gate, records
from suite.libraries import TITLES, library, one_core, settings
from suite.rows import Row, rows


def libraries(without: list[str]) -> dict[str, Any]:
    """Those that can be imported; JAX last, for it slows Python's garbage collection down."""
    os.environ.update(settings())
    one_core()
    found = {}
    for name in sorted(set(TITLES) - set(without), key=lambda name: name == "jax"):
        try:
            found[name] = library(name)
        except ImportError:
            print(f"without {TITLES[name]}, which cannot be imported")
    return found


def times(chosen: list[Row], without: list[str]) -> dict[str, dict[str, Any]]:
    """Wall times and peaks of memory by key, printed as they come."""
    from suite.clock import microseconds, peaks

    known, found = libraries(without), {}
    for row in chosen:
        unit, values = ("bytes", peaks(row, known)) if row.kind == "bytes" else ("us", microseconds(row, known))
        found[row.key] = {unit: values}
        shown = "  ".join(f"{TITLES[name]} {value:,.6g}" for name, value in values.items())
        print(f"{row.key:46} {shown} {unit}", flush=True)
    return found


def memory(chosen: list[Row]) -> dict[str, int]:
    """Peaks of tenferro alone."""
    from suite.clock import peaks

    only = [row for row in chosen if row.kind == "bytes"]
    known = libraries([name for name in TITLES if name != "tenferro"]) if only else {}
    return {row.key: peaks(row, known)["tenferro"] for row in only}


def run_gate(given: argparse.Namespace) -> int:
    from suite.counting import counted

    kept = [r for r in records.records() if any("instructions" in row for row in r.rows.values())]
    if not kept:
        print("no record has instruction counts: python3 dev bench record --counts")
        return 2
    reference = kept[-1]
    different = gate.differing(reference, records.versions())
    if different:
        said = "; ".join(f"{name} {now} instead of {before}" for name, (before, now) in different.items())
        print(f"counts are not comparable with those of {reference.commit}, which had other versions: {said}.")
        print("Check out that commit and record it anew with these versions, then compare.")
        return 2
    found = gate.changes(reference, counted(given.texts), memory(rows(given.texts)))
    print(f"compared with {reference.commit} of {reference.date[:10]}\n{gate.table(found)}")
    return int(any(change.rose for change in found))


def run_record(given: argparse.Namespace) -> int:
    from suite.counting import counted

    record, chosen = records.current(given.checkout), rows(given.texts)
    record.versions |= records.versions()
    found: dict[str, dict[str, Any]] = {row.key: {} for row in chosen}
    if not given.times:
        for key, count in counted(given.texts, strict=not given.lenient).items():
            found[key]["instructions"] = count
        keep(record, found)
    if given.counts:
        for key, peak in memory(chosen).items():
            found[key]["bytes"] = {"tenferro": peak}
    else:
        for key, measured in times(chosen, given.without).items():
            found[key] |= measured
        record.machine, record.note = records.machine(), given.note
    keep(record, found)
    return 0


def keep(record: records.Record, found: dict[str, dict[str, Any]]) -> None:
    """Add figures to a record and write it; after the counts too, so that they outlast an interrupted measurement."""
    merged = {row.key: record.rows.get(row.key, {}) | found.get(row.key, {}) for row in rows()}
    record.rows = {key: figures for key, figures in merged.items() if figures}
    record.save()
    print(f"kept in {record.path.relative_to(records.ROOT)}: {len(record.rows)} rows", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="dev bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=("gate", "record", "times", "check", "list", "history", "page"))
    parser.add_argument("texts", nargs="*", help="rows whose key contains one of these texts")
    parser.add_argument("--counts", action="store_true", help="record: instruction counts and peaks of memory only")
    parser.add_argument("--times", action="store_true", help="record: wall times only")
    parser.add_argument("--lenient", action="store_true", help="record: leave out rows that fail")
    parser.add_argument("--checkout", type=Path, default=records.ROOT, help="record: where the packages come from")
    parser.add_argument("--without", nargs="*", default=[], help="libraries to leave out")
    parser.add_argument("--note", default="", help="record: what a reader of the times should know")
    parser.add_argument("--json", help="times: file for the figures")
    given = parser.parse_args()
    if given.command == "list":
        for row in rows(given.texts):
            print(f"{row.key:46} {row.title}")
        return 0
    if given.command == "history":
        from suite.history import record_of

        return record_of(*given.texts)
    if given.command == "page":
        from suite.page import write

        write()
        return 0
    if given.command == "check":
        from suite.agreement import check

        return check(rows(given.texts), libraries(given.without))
    if given.command == "times":
        found = times(rows(given.texts), given.without)
        if given.json:
            with open(given.json, "w") as file:
                json.dump(found, file, indent=1)
        return 0
    return run_gate(given) if given.command == "gate" else run_record(given)


if __name__ == "__main__":
    sys.exit(main())
