"""What is done with finished programs besides running them: methods whose work stands on programs themselves."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Protocol

from tenferro_runtime.reports import BadStep, Explanation, Profile


class Toolbox(Protocol):
    """The functions behind the methods."""

    def save(self, program: Any, path: str | PathLike[str]) -> str:
        """Write to a file."""

    def hash_of(self, program: Any) -> str:
        """Hash of the content."""

    def explain(self, program: Any, donated: Sequence[int] = (), /, **sizes: int) -> Explanation:
        """Cost of each step."""

    def profile(self, program: Any, *values: Any, repeat: int) -> Profile:
        """Time of each step."""

    def draw(self, program: Any, path: str | PathLike[str] | None, format: str | None) -> str:
        """A graph."""

    def find_nan(self, f: Any, /, *args: Any, infinities: bool) -> BadStep | None:
        """The first step that makes a NaN."""


class Tooled:
    """The methods."""

    __slots__ = ()
    tools: ClassVar[Toolbox]
    """Set by the package: files and inspection stand above programs."""

    def save(self, path: str | PathLike[str]) -> str:
        """Write the program to a file that `load` reads; returns its content hash.

        Raises:
            ProgramFileError: a primitive or its metadata cannot be named in a file.
        """
        return Tooled.tools.save(self, path)

    @property
    def content_hash(self) -> str:
        """SHA-256 of what the program computes: equal for equal programs in every process.

        Names of inputs, example sizes and lines of code do not count.
        """
        return Tooled.tools.hash_of(self)

    def explain(self, **sizes: int) -> Explanation:
        """What each step costs: shapes, operations, bytes, device, kernel and line of code, and the predicted peak.

        Args:
            sizes: values of the open sizes, all or none; without them, counts are polynomials.

        >>> import tenferro_runtime as tr
        >>> program = tr.trace(lambda x: tr.tanh(x) * 2, tr.Spec((tr.dim("n"),), tr.float64))
        >>> program.explain().flops, program.explain(n=1000).peak_bytes
        (2*n, 8000)
        """
        return Tooled.tools.explain(self, **sizes)

    def profile(self, *values: Any, repeat: int = 10) -> Profile:
        """The time that each step takes on these values, measured; ``to_chrome_trace(path)`` writes a trace.

        Args:
            values: concrete arrays or numbers in the order of `inputs`.
            repeat: number of runs.
        """
        return Tooled.tools.profile(self, *values, repeat=repeat)

    def draw(self, path: str | PathLike[str] | None = None, format: str | None = None) -> str:
        """The program as a graph, ``"dot"`` or ``"html"``; returned, and written to `path` if that is given."""
        return Tooled.tools.draw(self, path, format)

    def find_nan(self, *values: Any, infinities: bool = True) -> BadStep | None:
        """The first step that makes a NaN or an infinity of these values, with what went in; ``None`` if none does.

        Args:
            values: concrete arrays or numbers in the order of `inputs`.
            infinities: whether an infinity counts.
        """
        return Tooled.tools.find_nan(self, *values, infinities=infinities)
