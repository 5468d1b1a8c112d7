"""docs/benchmarks.md below its mark, and its figures, from the records."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from suite.libraries import TITLES
from suite.records import ROOT, Record, records
from suite.rows import GROUPS, Row, rows, spelled

PAGE = ROOT / "docs" / "benchmarks.md"
FIGURES = ROOT / "docs" / "assets" / "figures"
MARK = "<!-- `python3 dev bench page` writes what follows. -->\n"
PEERS = tuple(name for name in TITLES if name != "tenferro")
BEHIND = 0.95
"""A peer's time over ours below which a row is listed as slower."""

GROUP_TITLES = {
    "imports": "Imports",
    "calls": "Small eager calls",
    "indexing": "Indexing",
    "assignment": "Assignment",
    "reductions": "Reductions and sorting",
    "elementwise": "Element-wise programs",
    "loops": "Loops",
    "compiled": "Small compiled calls",
    "first_calls": "First calls",
    "derivatives": "Derivatives",
    "batching": "Batching",
    "contractions": "Contractions",
    "linear_algebra": "Linear algebra",
    "fourier": "Fourier transforms",
    "random_numbers": "Random numbers",
    "special": "Special functions",
    "sparse": "Sparse matrices",
    "memory": "Memory",
    "xla": "Programs run by XLA",
}


def having(kept: list[Record], unit: str) -> list[Record]:
    """The records that have some figures of a unit."""
    return [record for record in kept if any(unit in row for row in record.rows.values())]


def ratios(figures: dict[str, float]) -> dict[str, float]:
    """Each peer's figure over ours."""
    return {name: figures[name] / figures["tenferro"] for name in PEERS if name in figures}


def measured(record: Record, key: str) -> tuple[str, dict[str, float]]:
    """The unit of a row, and its figures by library."""
    found = record.rows.get(key, {})
    return ("bytes", found["bytes"]) if "bytes" in found else ("us", found.get("us", {}))


def amount(unit: str, value: float) -> str:
    """A figure as people read it."""
    if unit == "bytes":
        return f"{value / 1e6:.3g} MB" if value >= 1e5 else f"{value / 1e3:.3g} kB"
    return f"{value / 1e3:.3g} ms" if value >= 1e3 else f"{value:.3g} µs"


def factor(value: float | None) -> str:
    """A ratio with two digits, bold where the peer is ahead."""
    if value is None:
        return ""
    shown = f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"
    return f"**{shown}**" if value < BEHIND else shown


def mean(values: Iterable[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def listed(record: Record) -> list[Row]:
    """The rows that a record has."""
    return [row for row in rows() if row.key in record.rows]


def slower(record: Record) -> list[str]:
    """A table of the rows in which a peer is ahead, the farthest first."""
    found = []
    for row in listed(record):
        unit, figures = measured(record, row.key)
        theirs = ratios(figures) if "tenferro" in figures else {}
        if theirs and min(theirs.values()) < BEHIND:
            peer = min(theirs, key=theirs.__getitem__)
            cells = [f"{GROUP_TITLES[row.group]}: {row.title}", amount(unit, figures["tenferro"])]
            found.append((theirs[peer], [*cells, TITLES[peer], amount(unit, figures[peer]), f"{theirs[peer]:.2f}"]))
    lines = ["| row | tenferro | peer | its figure | over ours |", "|---|---|---|---|---|"]
    return lines + [f"| {' | '.join(cells)} |" for _, cells in sorted(found)]


def summary(record: Record) -> list[str]:
    """A table of geometric means by peer."""
    lines = ["| peer | rows | geometric mean | peer ahead |", "|---|---|---|---|"]
    for peer in PEERS:
        each = []
        for row in listed(record):
            unit, figures = measured(record, row.key)
            if unit == "us" and peer in figures:
                each.append(figures[peer] / figures["tenferro"])
        if each:
            ahead = sum(r < BEHIND for r in each)
            lines.append(f"| {TITLES[peer]} | {len(each)} | {mean(each):.2g} | {ahead} |")
    return lines


def group_table(times: Record, counted: list[Record], group: str) -> list[str]:
    """All rows of a group."""
    chosen = [row for row in listed(times) if row.group == group]
    peers = [peer for peer in PEERS if any(peer in measured(times, row.key)[1] for row in chosen)]
    counts = counted[-1].rows if counted else {}
    heads = ["row", "tenferro", *[TITLES[peer] for peer in peers], *(["instructions"] if counts else [])]
    lines = [f"### {GROUP_TITLES[group]}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in chosen:
        unit, figures = measured(times, row.key)
        if "tenferro" not in figures:
            continue
        theirs, count = ratios(figures), counts.get(row.key, {}).get("instructions")
        cells = [amount(unit, figures["tenferro"]), *[factor(theirs.get(peer)) for peer in peers]]
        cells += [spelled(count) if count else ""] if counts else []
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    return [*lines, ""]


def text(kept: list[Record]) -> str:
    """What the page says below its mark."""
    timed, counted = having(kept, "us"), having(kept, "instructions")
    if not timed:
        return "No times have been recorded: `python3 dev bench record`.\n"
    times = timed[-1]
    versions = ", ".join(f"{name} {version}" for name, version in times.versions.items())
    lines = [
        f"Times: {times.machine}, one core, commit `{times.commit}` of {times.date[:10]}.",
        f"Versions: {versions}.",
        *([f"Note: {times.note}"] if times.note else []),
        "",
        "## Beside the peers",
        "",
        "![For each group of rows, the times of NumPy, JAX, PyTorch and autograd over those of tenferro]"
        "(assets/figures/benchmarks-peers.svg)",
        "",
        "A factor is the peer's time over ours: above 1, tenferro is faster.",
        "",
        *summary(times),
        "",
        "## Where a peer is faster",
        "",
        *slower(times),
        "",
        *over_time(counted),
        "## All rows",
        "",
        "Time of one call of tenferro, the factors of the peers (bold where the peer is faster), and instructions of a",
        "call of tenferro. Rows of memory show peaks in bytes, and factors of bytes.",
        "",
    ]
    for group in GROUPS:
        if any(row.group == group for row in listed(times)):
            lines += group_table(times, counted, group)
    return "\n".join(lines).rstrip() + "\n"


def over_time(counted: list[Record]) -> list[str]:
    """The section about instruction counts, where there are some."""
    if not counted:
        return []
    return [
        "## Over time",
        "",
        "![Instruction counts of each group of rows over the commits, relative to the first record]"
        "(assets/figures/benchmarks-history.svg)",
        "",
        "Geometric means of instruction counts by group, relative to the oldest record. Between two records only rows",
        "that both have are compared.",
        "",
        "| commit | date | rows counted |",
        "|---|---|---|",
        *[
            f"| `{r.commit}` | {r.date.replace('T', ' ')} | {sum('instructions' in row for row in r.rows.values())} |"
            for r in counted
        ],
        "",
    ]


def page(kept: list[Record]) -> str:
    """The whole page."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return f"{head}{mark}{text(kept)}"


def write() -> None:
    """Write the page and its figures."""
    import matplotlib as mpl

    from suite.figures import history, peers

    kept = records()
    PAGE.write_text(page(kept), encoding="utf-8")
    mpl.use("agg")
    mpl.rc_file(ROOT / "docs" / "figures.mplstyle")
    timed, counted = having(kept, "us"), having(kept, "instructions")
    drawn = {"peers": peers(timed[-1])} if timed else {}
    if timed and counted:
        drawn["history"] = history(counted)
    for name, figure in drawn.items():
        path = FIGURES / f"benchmarks-{name}.svg"
        figure.savefig(path, metadata={"Date": None})
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")
