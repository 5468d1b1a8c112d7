"""Reports of checks: one row for each check, and the error that lists the failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from tenferro_tensor.markup import aligned
from tenferro_tensor_core import ArgumentError, TenferroError

S = TypeVar("S")

MISTAKES_SHOWN: Final = 4
"""Maximum number of mistakes listed for one check; further ones usually have the same cause."""


class LeftOut(Exception):
    """Raised by a check that does not apply; the text says why."""


class Mistake(Exception):
    """A violation that a call shows; the text says what to do."""


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
class CheckReport:
    """The outcome of all checks; prints as a table.

    Attributes:
        checker: the function that checked, as in ``"check_primitive"``.
        subject: what was checked, as text.
        findings: the outcome of each check, in order.
        absent: the operations for which a backend has no kernel; empty for other subjects.
    """

    checker: str
    subject: str
    findings: tuple[Finding, ...]
    absent: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple([f for f in self.findings if f.mistakes])

    def __repr__(self) -> str:
        rows = [(f.check, f.outcome, f.left_out or "; ".join(f.mistakes)) for f in self.findings]
        absent = f"\nno kernel for {', '.join(self.absent)}" if self.absent else ""
        return f"{self.subject}\n{aligned(rows)}{absent}"


class CheckError(TenferroError, RuntimeError):
    """A check found mistakes; the message lists them, with advice for each.

    Attributes:
        report: the outcome of every check.
    """

    def __init__(self, report: CheckReport) -> None:
        failed = report.failed
        lines = [
            f"  {finding.check}: {text}"
            for finding in failed
            for text in (*finding.mistakes[:MISTAKES_SHOWN], *_more(finding.mistakes))
        ]
        count = f"{len(failed)} of {len(report.findings)} checks of {report.checker}"
        super().__init__(f"{report.subject} failed {count}:\n" + "\n".join(lines))
        self.report = report


def _more(mistakes: tuple[str, ...]) -> list[str]:
    return [f"and {len(mistakes) - MISTAKES_SHOWN} more"] if len(mistakes) > MISTAKES_SHOWN else []


def run_checks(
    checker: str,
    title: str,
    checks: Mapping[str, Callable[[S], Iterator[str]]],
    subject: S,
    skip: Sequence[str],
    *,
    first: str = "",
    absent: Sequence[str] = (),
) -> CheckReport:
    """Run checks on a subject.

    Args:
        checker: the function that checks.
        title: the subject as text.
        checks: the checks by name; each yields its mistakes, or raises `LeftOut`.
        subject: the subject.
        skip: names of checks to leave out.
        first: the reason why all other checks are left out if the first one fails; by default they run.
        absent: as in `CheckReport`.

    Returns:
        The report.

    Raises:
        CheckError: a check failed.
        ArgumentError: `skip` names an unknown check.
    """
    unknown = sorted(set(skip) - set(checks))
    if unknown:
        raise ArgumentError(f"{checker} has no check {', '.join(unknown)}; it has {', '.join(checks)}")
    findings: list[Finding] = []
    for name, check in checks.items():
        if first and findings and findings[0].mistakes:
            findings.append(Finding(name, left_out=first))
        elif name in skip:
            findings.append(Finding(name, left_out="skipped on request"))
        else:
            findings.append(_outcome(name, check, subject))
    report = CheckReport(checker, title, tuple(findings), tuple(absent))
    if report.failed:
        raise CheckError(report)
    return report


def _outcome(name: str, check: Callable[[S], Iterator[str]], subject: S) -> Finding:
    mistakes: list[str] = []
    try:
        mistakes.extend(check(subject))
    except LeftOut as reason:
        return Finding(name, left_out=str(reason))
    except Exception as error:
        mistakes.append(f"{type(error).__name__}: {error}")
    return Finding(name, tuple(mistakes))
