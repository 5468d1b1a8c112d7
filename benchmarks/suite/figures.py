"""The figures of docs/benchmarks.md."""

from __future__ import annotations

import math
from typing import Any

from suite.libraries import TITLES
from suite.page import GROUP_TITLES, PEERS, listed, mean, measured, ratios
from suite.records import Record
from suite.rows import GROUPS

MOST_DATES = 8
"""Dates on one axis; with more records only some are labelled, the newest always."""
LANES = {"numpy": 0.27, "jax": 0.09, "torch": -0.09, "autograd": -0.27}
MARKS = {"numpy": "o", "jax": "s", "torch": "^", "autograd": "D"}
NAMED = {"numpy": "imports", "jax": "imports", "torch": "imports", "autograd": "derivatives"}
"""The group whose mean carries the name of a peer: those of the first one are far apart."""


def peers(record: Record) -> Any:
    """For each group the geometric mean of its rows' factors, a large mark, and the factors, small ones."""
    import matplotlib.pyplot as plt

    groups = [g for g in GROUPS if g != "memory" and any(r.group == g for r in listed(record))]
    figure, axes = plt.subplots(figsize=(7, 0.42 * len(groups) + 0.6))
    for peer, color in zip(PEERS, ("C0", "C1", "C2", "C3"), strict=True):
        for height, group in enumerate(reversed(groups)):
            each = [
                ratio[peer]
                for row in listed(record)
                if row.group == group and peer in (ratio := ratios(measured(record, row.key)[1]))
            ]
            if not each:
                continue
            y = height + LANES[peer]
            axes.plot(each, [y] * len(each), MARKS[peer], color=color, markersize=3, alpha=0.45, markeredgewidth=0)
            axes.plot(mean(each), y, MARKS[peer], color=color, markersize=8.5, markeredgewidth=0)
            if NAMED[peer] == group:
                left = mean(each) < 1.0
                axes.annotate(
                    TITLES[peer], (mean(each), y), (-8 if left else 8, 0), textcoords="offset points",
                    ha="right" if left else "left", va="center", color=color, fontsize=11, fontweight="bold",
                )  # fmt: skip
    for height in range(0, len(groups), 2):
        axes.axhspan(height - 0.5, height + 0.5, color="#808488", alpha=0.1, linewidth=0)
    axes.axvline(1.0, color="#808488", linewidth=1.6)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 1, 10, 100, 1000], ["0.1×", "1×", "10×", "100×", "1000×"])
    axes.set_yticks(range(len(groups)), [GROUP_TITLES[g] for g in reversed(groups)], fontsize=11)
    axes.set_ylim(-0.5, len(groups) - 0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time of the peer over ours: right of the line, tenferro is faster")
    return figure


def index(kept: list[Record], group: str) -> list[float | None]:
    """Relative counts of a group: changes from record to record over the rows that both have, multiplied."""
    found: list[float | None] = []
    level, last = 1.0, None
    for record in kept:
        counted = {key: row["instructions"] for key, row in record.rows.items() if "instructions" in row}
        now = {key: count for key, count in counted.items() if key.startswith(f"{group}/")}
        if not now:
            found.append(None)
            continue
        common = [key for key in now if last is not None and key in last]
        if last is not None and common:
            level *= mean(now[key] / last[key] for key in common)
        found.append(level)
        last = now
    return found


def labels(kept: list[Record]) -> list[str]:
    """The dates of records, with the time of day where a date has several."""
    dates = [record.date[:10] for record in kept]
    return [r.date.replace("T", " ") if dates.count(day) > 1 else day for r, day in zip(kept, dates, strict=True)]


def history(kept: list[Record]) -> Any:
    """A panel for each group: instruction counts from record to record."""
    import matplotlib.pyplot as plt

    groups = [g for g in GROUPS if any(v is not None for v in index(kept, g))]
    columns = 4
    names, shown = labels(kept), range(len(kept))[:: -math.ceil(len(kept) / MOST_DATES)]
    lines = -(-len(groups) // columns)
    figure, panels = plt.subplots(lines, columns, figsize=(7, 1.25 * lines + 0.4), sharex=True, sharey=True)
    for panel in panels.flat[len(groups) :]:  # only the dates below
        panel.spines[:].set_visible(False)
        panel.grid(visible=False)
        panel.tick_params(left=False, bottom=False)
    for group, panel in zip(groups, panels.flat, strict=False):
        pairs = [(n, value) for n, value in enumerate(index(kept, group)) if value is not None]
        panel.plot(*zip(*pairs, strict=True), "o-", color="C0")
        panel.axhline(1.0, color="#808488", linewidth=0.8)
        panel.set_title(GROUP_TITLES[group], fontsize=8.5)
    for panel in panels.flat:
        panel.set_xlim(-0.5, len(kept) - 0.5)
        panel.set_xticks(shown, [names[n] for n in shown], rotation=90)
        panel.tick_params(labelsize=7.5)
    low, high = panels.flat[0].get_ylim()
    panels.flat[0].set_ylim(min(low, 0.9), max(high, 1.1))
    figure.supylabel("instructions, relative", fontsize=9)
    return figure
