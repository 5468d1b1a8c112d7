"""Methods of finished programs besides running them: explain, draw, save and the like."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenferro_tensor import library

if TYPE_CHECKING:
    from tenferro_runtime.reports import BadStep, Explanation, LibraryFiles, Profile


def above(package: str) -> Any:
    """A package that stands above programs: it imports them, and is imported here when a method first needs it."""
    return library(f"tenferro_runtime.{package}")


class Tooled:
    """The methods."""

    __slots__ = ()

    def save(self, path: str | PathLike[str]) -> str:
        """Write the program to a file that `load` reads; returns its content hash.

        Raises:
            ProgramFileError: a primitive or its metadata cannot be named in a file.
        """
        content_hash: str = above("files").save(self, path)
        return content_hash

    def export_library(self, path: str | PathLike[str], name: str | None = None, **options: Any) -> LibraryFiles:
        """Write the program as a function in the convention of C; see `tenferro_runtime.export_library`.

        Args:
            path: a folder and a name, as in ``"build/heat"``.
            name: name of the function; by default the last part of the path.
            options: ``level``, ``libraries`` and ``shared``.
        """
        files: LibraryFiles = above("exporting").export_library(path, {name or Path(path).name: self}, **options)
        return files

    @property
    def content_hash(self) -> str:
        """SHA-256 of what the program computes: equal for equal programs in every process.

        Names of inputs, example sizes and lines of code do not count.
        """
        content_hash: str = above("files").hash_of(self)
        return content_hash

    def explain(self, **sizes: int) -> Explanation:
        """The cost of each step: shapes, operations, bytes, device, kernel and line of code, and the predicted peak.

        Args:
            sizes: values of the symbolic sizes, all or none; without them, counts are polynomials.

        >>> import tenferro_runtime as tr
        >>> program = tr.trace(lambda x: tr.tanh(x) * 2, tr.Spec((tr.dim("n"),), tr.float64))
        >>> program.explain().flops, program.explain(n=1000).peak_bytes
        (2*n, 8000)
        """
        found: Explanation = above("inspection").explain(self, **sizes)
        return found

    def profile(self, *values: Any, repeat: int = 10) -> Profile:
        """The time that each step takes on these values, measured, and the memory over time by line of code.

        It shows tables; ``to_html(path)`` writes a page, ``to_chrome_trace(path)`` a trace for Perfetto.

        Args:
            values: concrete arrays or numbers in the order of `inputs`.
            repeat: number of runs.
        """
        found: Profile = above("inspection").profile(self, *values, repeat=repeat)
        return found

    def draw(self, path: str | PathLike[str] | None = None, format: str | None = None) -> str:
        """The program as a graph, ``"dot"``, ``"svg"`` or ``"html"``; returned, and written to `path` if given."""
        found: str = above("inspection").draw(self, path, format)
        return found

    def find_nan(self, *values: Any, infinities: bool = True) -> BadStep | None:
        """The first step that makes a NaN or an infinity of these values, with what went in; ``None`` if none does.

        Args:
            values: concrete arrays or numbers in the order of `inputs`.
            infinities: whether an infinity counts.
        """
        found: BadStep | None = above("inspection").find_nan(self, *values, infinities=infinities)
        return found

    def _repr_html_(self) -> str:
        html: str = above("inspection").program_card(self)
        return html

    def planned(self) -> Callable[[tuple[Any, ...]], Callable[..., tuple[Any, ...]]] | None:
        """For a program that runs by a plan: gives it over raw arrays for some sizes."""
        found: Callable[[tuple[Any, ...]], Callable[..., tuple[Any, ...]]] | None = above("executing").planned(self)
        return found
