"""The report of `check_compiler`, and the error that lists the failures."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_ad.primitive_checks._report import Finding, complaint, failures, shown
from tenferro_tensor_core import TenferroError


@dataclass(frozen=True, slots=True, repr=False)
class CompilerReport:
    """The outcome of `check_compiler`; prints as a table.

    Attributes:
        compiler: name of the compiler.
        findings: the outcome of each check, in order.
    """

    compiler: str
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return failures(self.findings)

    def __repr__(self) -> str:
        return shown(f"compiler {self.compiler}", self.findings)


class CompilerError(TenferroError, RuntimeError):
    """`check_compiler` found mistakes in a compiler; the message lists them, with advice for each.

    Attributes:
        report: the outcome of every check.
    """

    def __init__(self, report: CompilerReport) -> None:
        super().__init__(complaint(f"the compiler {report.compiler!r}", report.findings, "check_compiler"))
        self.report = report
