"""The gate: instruction counts beside recorded ones, and peaks of memory, within a tolerance."""

from __future__ import annotations

from dataclasses import dataclass

from suite.records import Record

TOLERANCE = 0.03
"""Relative rise of a count that passes; counts of equal code repeat within a third of it (docs/benchmarks.md)."""
LOOSER = {"calls/from_numpy": 0.08}
"""Rows whose counts depend on more than the code."""
SLACK = 200
"""Instructions by which each call may rise: a few of them move with addresses, which tiny calls notice."""

COUNTED_WITH = ("python", "numpy", "scipy", "llvmlite", "valgrind")
"""What instruction counts depend on beside the packages."""


@dataclass(frozen=True)
class Change:
    """A figure of a row, before and now."""

    key: str
    unit: str
    before: float
    now: float

    @property
    def ratio(self) -> float:
        return self.now / self.before

    @property
    def rose(self) -> bool:
        """Whether it rose by more than its tolerance."""
        slack = SLACK * min(1.0, self.before / 20_000) if self.unit == "instructions" else 4096
        return self.now > self.before * (1 + LOOSER.get(self.key, TOLERANCE)) + slack

    @property
    def fell(self) -> bool:
        return Change(self.key, self.unit, self.now, self.before).rose


def changes(reference: Record, instructions: dict[str, float], peaks: dict[str, int]) -> list[Change]:
    """The rows that both have."""
    found = []
    for unit, now in (("instructions", instructions), ("bytes", peaks)):
        for key, value in now.items():
            before = reference.rows.get(key, {}).get(unit)
            if before is not None:
                before = before["tenferro"] if unit == "bytes" else before
                found.append(Change(key, unit, before, value))
    return found


def differing(reference: Record, versions: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Versions that make counts incomparable, before and now; Python's patch releases do not."""

    def shortened(name: str, version: str) -> str:
        return version.rpartition(".")[0] if name == "python" else version

    both = {name: (reference.versions.get(name, "none"), versions.get(name, "none")) for name in COUNTED_WITH}
    return {name: pair for name, pair in both.items() if shortened(name, pair[0]) != shortened(name, pair[1])}


def table(found: list[Change]) -> str:
    """Lines for the rows that rose, worst first, then those that fell, and a summary."""
    lines = []
    for title, some in (("rose", [c for c in found if c.rose]), ("fell", [c for c in found if c.fell])):
        for c in sorted(some, key=lambda c: c.ratio, reverse=title == "rose"):
            lines.append(f"{title}  {c.key:46} {c.before:14,.0f} -> {c.now:14,.0f} {c.unit:13} {c.ratio - 1:+8.1%}")
    rose = sum(c.rose for c in found)
    return "\n".join([*lines, f"{len(found)} figures compared: {rose} rose, {sum(c.fell for c in found)} fell"])
