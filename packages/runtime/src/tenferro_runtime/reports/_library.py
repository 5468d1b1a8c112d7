"""`LibraryFiles`: the files of an export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LibraryFiles:
    """The files of a library.

    Attributes:
        header: declarations for C and C++.
        object: machine code, to be linked into a program.
        library: the shared library, or None if it was not requested.
    """

    header: Path
    object: Path
    library: Path | None
