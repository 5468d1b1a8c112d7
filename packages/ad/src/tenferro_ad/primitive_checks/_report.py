"""Reports of `check_primitive` and `check_compiler`: one row for each check, and the error that lists the failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tenferro_runtime.reports import aligned
from tenferro_tensor_core import ArgumentError, TenferroError

S = TypeVar("S")

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
        return failures(self.findings)

    def __repr__(self) -> str:
        return shown(self.primitive, self.findings)


class PrimitiveError(TenferroError, RuntimeError):
    """`check_primitive` found mistakes in a primitive; the message lists them, with advice for each.

    Attributes:
        report: the outcome of every check.
    """

    def __init__(self, report: PrimitiveReport) -> None:
        super().__init__(complaint(report.primitive, report.findings, "check_primitive"))
        self.report = report


def failures(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings with mistakes."""
    return tuple([f for f in findings if f.mistakes])


def shown(title: str, findings: tuple[Finding, ...]) -> str:
    """The findings as a table below a title."""
    return f"{title}\n{aligned([(f.check, f.outcome, f.left_out or '; '.join(f.mistakes)) for f in findings])}"


def complaint(title: str, findings: tuple[Finding, ...], checker: str) -> str:
    """The text of an error that lists the mistakes."""
    failed = failures(findings)
    lines = [
        f"  {finding.check}: {text}"
        for finding in failed
        for text in (*finding.mistakes[:MISTAKES_SHOWN], *_more(finding.mistakes))
    ]
    return f"{title} failed {len(failed)} of {len(findings)} checks of {checker}:\n" + "\n".join(lines)


def _more(mistakes: tuple[str, ...]) -> list[str]:
    return [f"and {len(mistakes) - MISTAKES_SHOWN} more"] if len(mistakes) > MISTAKES_SHOWN else []


def require_known(skip: Sequence[str], checks: Mapping[str, Any], checker: str) -> None:
    """Raise an error for a check to skip that does not exist."""
    unknown = sorted(set(skip) - set(checks))
    if unknown:
        raise ArgumentError(f"{checker} has no check {', '.join(unknown)}; it has {', '.join(checks)}")


def made(name: str, check: Callable[[S], Iterator[str]], subject: S, skip: Sequence[str]) -> Finding:
    """The outcome of a check."""
    if name in skip:
        return Finding(name, left_out="skipped on request")
    try:
        return Finding(name, tuple(check(subject)))
    except LeftOut as reason:
        return Finding(name, left_out=str(reason))
    except Exception as error:
        return Finding(name, (f"{type(error).__name__}: {error}",))
