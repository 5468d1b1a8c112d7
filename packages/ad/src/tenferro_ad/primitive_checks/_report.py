"""What `check_primitive` finds: one row for each check, and the error that lists all that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tenferro_runtime.reports import aligned
from tenferro_tensor_core import TenferroError

SHOWN: Final = 4
"""Mistakes of one check that the error lists; the others have the same cause, as a rule."""


class LeftOut(Exception):
    """A check does not apply; the text says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Attributes:
        check: name of the check.
        mistakes: what is wrong, and what to do; empty where nothing is.
        left_out: why the check does not apply; empty where it was made.
    """

    check: str
    mistakes: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def outcome(self) -> str:
        """``"failed"``, ``"left out"`` or ``"passed"``."""
        return "failed" if self.mistakes else "left out" if self.left_out else "passed"


@dataclass(frozen=True, slots=True, repr=False)
class PrimitiveReport:
    """What was checked of a primitive; prints as a table.

    Attributes:
        primitive: the op that was checked, as text.
        findings: the outcome of each check, in order.
    """

    primitive: str
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks that found a mistake."""
        return tuple([f for f in self.findings if f.mistakes])

    def __repr__(self) -> str:
        rows = [(f.check, f.outcome, f.left_out or "; ".join(f.mistakes)) for f in self.findings]
        return f"{self.primitive}\n{aligned(rows)}"


class PrimitiveError(TenferroError, RuntimeError):
    """`check_primitive` found mistakes in a primitive; the text lists them all, and what to do about each.

    The attribute `report` holds the outcome of every check.
    """

    def __init__(self, report: PrimitiveReport) -> None:
        lines = [
            f"  {finding.check}: {text}"
            for finding in report.failed
            for text in (*finding.mistakes[:SHOWN], *_more(finding.mistakes))
        ]
        count = len(report.failed)
        super().__init__(
            f"{report.primitive} failed {count} of {len(report.findings)} checks of check_primitive:\n"
            + "\n".join(lines)
        )
        self.report = report


def _more(mistakes: tuple[str, ...]) -> list[str]:
    return [f"and {len(mistakes) - SHOWN} more of the kind"] if len(mistakes) > SHOWN else []
