"""What is done with finished programs besides running them: methods whose work stands on programs themselves."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar, Protocol


class Toolbox(Protocol):
    """The functions behind the methods."""

    def save(self, program: Any, path: str | PathLike[str]) -> str:
        """Write to a file."""

    def hash_of(self, program: Any) -> str:
        """Hash of the content."""


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
