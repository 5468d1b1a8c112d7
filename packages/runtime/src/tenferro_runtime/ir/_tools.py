"""Methods of programs that inspect, save or export them."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

from tenferro_tensor import library

if TYPE_CHECKING:
    from tenferro_runtime.reports import BadStep, Explanation, LibraryFiles, Profile


def above(package: str) -> Any:
    """Import a package of a higher layer when a method first needs it."""
    return library(f"tenferro_runtime.{package}")


class Tooled:
    """Base class of `Program`: methods that inspect, save or export it."""

    __slots__ = ()

    def save(self, path: str | PathLike[str]) -> str:
        """Write the program to a file that `load` reads.

        Args:
            path: the file.

        Returns:
            The hash of the content.

        Raises:
            ProgramFileError: a primitive or its metadata cannot be stored in a file.
        """
        content_hash: str = above("exporting.files").save(self, path)
        return content_hash

    def export_library(self, path: str | PathLike[str], name: str | None = None, **options: Any) -> LibraryFiles:
        """Export the program as a C function; see `tenferro_runtime.export_library`.

        Args:
            path: a folder and a name, as in ``"build/heat"``.
            name: name of the function; by default the last part of the path.
            options: ``level``, ``libraries`` and ``shared``.
        """
        files: LibraryFiles = above("exporting").export_library(path, {name or os.path.basename(path): self}, **options)
        return files

    @property
    def content_hash(self) -> str:
        """SHA-256 of the computation: equal for equal programs in every process.

        Names of inputs, example sizes and source lines are ignored.
        """
        content_hash: str = above("exporting.files").hash_of(self)
        return content_hash

    def explain(self, **sizes: int) -> Explanation:
        """Estimate each step: shapes, operations, bytes, device, kernel and source line, and the memory peak.

        Args:
            sizes: values of the symbolic sizes, all or none; without them, counts are polynomials.

        Returns:
            The estimate, which prints as a table.

        >>> import tenferro_runtime as tr
        >>> program = tr.trace(lambda x: tr.tanh(x) * 2, tr.Spec((tr.dim("n"),), tr.float64))
        >>> program.explain().flops, program.explain(n=1000).peak_bytes
        (2*n, 8000)
        """
        found: Explanation = above("inspection").explain(self, **sizes)
        return found

    def profile(self, *values: Any, repeat: int = 10) -> Profile:
        """Measure the time of each step for given values, and the memory over time by source line.

        Args:
            values: concrete arrays or numbers, one for each input.
            repeat: number of runs.

        Returns:
            Tables of both; ``to_html(path)`` writes a page, ``to_chrome_trace(path)`` a trace for Perfetto.
        """
        found: Profile = above("inspection").profile(self, *values, repeat=repeat)
        return found

    def draw(self, path: str | PathLike[str] | None = None, format: str | None = None) -> str:
        """Draw the program as a graph.

        Args:
            path: the file to write, if any.
            format: ``"dot"``, ``"svg"`` or ``"html"``; by default that of the path.

        Returns:
            The text of the graph.
        """
        found: str = above("inspection").draw(self, path, format)
        return found

    def find_nan(self, *values: Any, infinities: bool = True) -> BadStep | None:
        """Find the first step that produces a NaN or an infinity.

        Args:
            values: concrete arrays or numbers, one for each input.
            infinities: whether an infinity counts.

        Returns:
            The step with its operands, or ``None`` if there is none.
        """
        found: BadStep | None = above("inspection").find_nan(self, *values, infinities=infinities)
        return found

    def _repr_html_(self) -> str:
        html: str = above("inspection").program_card(self)
        return html

    def planned(self) -> Callable[[tuple[Any, ...]], Callable[..., tuple[Any, ...]]] | None:
        """For a program that runs by a plan: prepares it over raw arrays for given sizes."""
        found: Callable[[tuple[Any, ...]], Callable[..., tuple[Any, ...]]] | None = above("placement").planned(self)
        return found
