"""The figures of docs/benchmarks.md."""

from __future__ import annotations

from typing import Any

from suite.libraries import TITLES
from suite.page import GROUP_TITLES, PEERS, listed, mean, measured, ratios
from suite.records import Record
from suite.rows import GROUPS

LANES = {"numpy": 0.24, "jax": 0.08, "torch": -0.08, "autograd": -0.24}


def peers(record: Record) -> Any:
    """For each group the factors of its rows, a dot each, and their geometric means, a line."""
    import matplotlib.pyplot as plt

    groups = [g for g in GROUPS if g != "memory" and any(r.group == g for r in listed(record))]
    figure, axes = plt.subplots(figsize=(7, 0.36 * len(groups) + 0.9))
    for peer, color in zip(PEERS, ("C0", "C1", "C2", "C3"), strict=True):
        xs, ys = [], []
        for height, group in enumerate(reversed(groups)):
            each = [
                ratio[peer]
                for row in listed(record)
                if row.group == group and peer in (ratio := ratios(measured(record, row.key)[1]))
            ]
            xs += each
            ys += [height + LANES[peer]] * len(each)
            if each:
                axes.plot([mean(each)] * 2, [height + LANES[peer] - 0.12, height + LANES[peer] + 0.12], color=color)
        axes.plot(xs, ys, "o", color=color, markersize=3.5, alpha=0.65, markeredgewidth=0, label=TITLES[peer])
    axes.axvline(1.0, color="#808488", linewidth=1.2)
    axes.set_xscale("log")
    axes.set_yticks(range(len(groups)), [GROUP_TITLES[g] for g in reversed(groups)])
    axes.set_ylim(-0.6, len(groups) - 0.4)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time of the peer over time of tenferro (right of 1: tenferro is faster)")
    figure.legend(loc="outside upper center", ncols=len(PEERS))
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


def history(kept: list[Record]) -> Any:
    """A panel for each group."""
    import matplotlib.pyplot as plt

    kept = [r for r in kept if any("instructions" in row for row in r.rows.values())]
    groups = [g for g in GROUPS if any(v is not None for v in index(kept, g))]
    columns = 4
    lines = -(-len(groups) // columns)
    figure, panels = plt.subplots(lines, columns, figsize=(7, 1.25 * lines + 0.4), sharex=True, sharey=True)
    for panel in panels.flat[len(groups) :]:
        panel.set_visible(False)
    for group, panel in zip(groups, panels.flat, strict=False):
        pairs = [(n, value) for n, value in enumerate(index(kept, group)) if value is not None]
        panel.plot(*zip(*pairs, strict=True), "o-", color="C0")
        panel.axhline(1.0, color="#808488", linewidth=0.8)
        panel.set_title(GROUP_TITLES[group], fontsize=8.5)
        panel.set_yscale("log", base=2)
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.set_xticks(range(len(kept)), [r.date[5:10] for r in kept], rotation=90, fontsize=7)
        panel.tick_params(labelsize=7.5)
    figure.supylabel("instructions, relative", fontsize=9)
    return figure
