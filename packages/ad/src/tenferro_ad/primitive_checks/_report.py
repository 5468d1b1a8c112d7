"""The report of `check_primitive`: one row for each check, and the error that lists the failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tenferro_runtime.reports import aligned
from tenferro_tensor_core import TenferroError

MISTAKES_SHOWN: Final = 4
"""Maximum number of mistakes listed for one check; further ones usually have the same cause."""


class LeftOut(Exception):
    """Raised by a check that does not apply; the text says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Attributes:
        check: name of the check.
        mistakes: descriptions of the failures, with advice; empty if the check passed.
        left_out: the reason why the check does not apply; empty if it ran.
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
    """The outcome of `check_primitive`; prints as a table.

    Attributes:
        primitive: the checked op, as text.
        findings: the outcome of each check, in order.
    """

    primitive: str
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple([f for f in self.findings if f.mistakes])

    def __repr__(self) -> str:
        rows = [(f.check, f.outcome, f.left_out or "; ".join(f.mistakes)) for f in self.findings]
        return f"{self.primitive}\n{aligned(rows)}"


class PrimitiveError(TenferroError, RuntimeError):
    """`check_primitive` found mistakes in a primitive; the message lists them, with advice for each.

    Attributes:
        report: the outcome of every check.
    """

    def __init__(self, report: PrimitiveReport) -> None:
        lines = [
            f"  {finding.check}: {text}"
            for finding in report.failed
            for text in (*finding.mistakes[:MISTAKES_SHOWN], *_more(finding.mistakes))
        ]
        count = len(report.failed)
        super().__init__(
            f"{report.primitive} failed {count} of {len(report.findings)} checks of check_primitive:\n"
            + "\n".join(lines)
        )
        self.report = report


def _more(mistakes: tuple[str, ...]) -> list[str]:
    return [f"and {len(mistakes) - MISTAKES_SHOWN} more"] if len(mistakes) > MISTAKES_SHOWN else []
