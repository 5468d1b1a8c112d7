"""The table of `loops.py`: a line for each row, the geometric means of every family and of all rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
"""Name, size, gradients; seconds under `times` and `first`; errors under `failed`, those of peers under `without`."""

CONTESTANTS = ("tenferro", "jax", "numpy")
FIRST = {"tenferro": "1st call", "ready": "ready", "jax": "jax 1st"}
RATIOS = {"jax": "jax/", "best": "best/", "was": "was/", "first": "1st/jax", "ready": "rdy/jax"}


def key(row: Row) -> tuple[str, str, bool]:
    """What the same row of two runs has in common."""
    return row["name"], row["size"], row["gradients"]


def mean(values: Iterable[float]) -> float:
    """The geometric mean, NaN of no values."""
    values = [v for v in values if v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def cells(numbers: Sequence[float | None], width: int, digits: int) -> str:
    """Numbers in columns, a dash where there is none."""
    return "".join(f"{'-':>{width}}" if n is None or math.isnan(n) else f"{n:{width}.{digits}f}" for n in numbers)


@dataclass
class Table:
    """Rows as they are measured; `families` has the family of every program."""

    families: dict[str, str]
    first: bool
    earlier: Sequence[Row] = ()
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.before = {key(row): row["times"].get("tenferro") for row in self.earlier}
        hidden = set() if self.first else {"first", "ready"}
        self.shown = [name for name in RATIOS if name not in hidden and (self.earlier or name != "was")]

    def ratios(self, row: Row) -> dict[str, float]:
        """The figures of a row that could be measured; none where the results are wrong."""
        times, first, found = row["times"], row["first"], {}
        if "tenferro" not in times or "tenferro" not in first or any("differs" in text for text in row["failed"]):
            return {}
        peers = {name: times[name] / times["tenferro"] for name in ("jax", "numpy") if name in times}
        if "jax" in peers:
            found["jax"] = peers["jax"]
        if peers:
            found["best"] = min(peers.values())
        if before := self.before.get(key(row)):
            found["was"] = before / times["tenferro"]
        if "jax" in first:
            found["first"] = first["tenferro"] / first["jax"]
            found |= {"ready": first["ready"] / first["jax"]} if "ready" in first else {}
        return found

    def heading(self) -> str:
        """The names of the columns."""
        line = f"{'ms':32}" + "".join(f"{name:>10}" for name in CONTESTANTS)
        line += "".join(f"{name:>9}" for name in FIRST.values()) if self.first else ""
        return line + "".join(f"{RATIOS[name]:>9}" for name in self.shown)

    def line(self, row: Row) -> str:
        """Keep a row and format it."""
        self.rows.append(row)
        found = self.ratios(row)
        line = f"{row['name']:24}{row['size']:8}" + cells([ms(row["times"].get(name)) for name in CONTESTANTS], 10, 3)
        line += cells([ms(row["first"].get(name)) for name in FIRST], 9, 0) if self.first else ""
        line += cells([found.get(name) for name in self.shown], 9, 2)
        return line + "".join(f"\n    {text}" for text in row["failed"] + row["without"])

    def summary(self) -> str:
        """Geometric means of each family and of all rows, and how many rows are behind the best peer or failed."""
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(self.families[row["name"]], []).append(row)
        groups["all"] = self.rows
        head = f"{'geometric means':24}{'rows':>6}" + "".join(f"{RATIOS[name]:>9}" for name in self.shown)
        return "\n".join([head + f"{'behind':>8}{'failed':>8}", *map(self.means, groups, groups.values())])

    def means(self, family: str, rows: list[Row]) -> str:
        """One line of the summary."""
        found = [self.ratios(row) for row in rows]
        line = f"{family:24}{len(rows):6}" + cells([mean(r[k] for r in found if k in r) for k in self.shown], 9, 2)
        behind = sum(r["best"] < 1 for r in found if "best" in r)
        return line + f"{behind:8}{sum(bool(row['failed']) for row in rows):8}"


def ms(seconds: float | None) -> float | None:
    """Milliseconds, where there is a time."""
    return None if seconds is None else seconds * 1e3
