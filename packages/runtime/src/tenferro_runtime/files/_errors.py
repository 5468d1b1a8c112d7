"""Errors of program files, and how much of a file is read before it is refused."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_tensor_core import TenferroError


class ProgramFileError(TenferroError, ValueError):
    """A program cannot be written to a file, or a file cannot be read as a program.

    Raised for damaged files, files of a newer version, primitives that are not installed or that have no name which
    another process could find them by, and files that are larger than the limits allow. Nothing of the file has run.
    """


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Bounds on what `load` reads, so that a file from a stranger cannot use up the machine.

    Attributes:
        text: bytes of the description of the program, unpacked.
        constants: bytes of all constants together.
        equations: number of equations, those of programs inside of programs included.
        nesting: depth of programs inside of programs, of containers, and of sizes inside of sizes.
    """

    text: int = 256 * 2**20
    constants: int = 16 * 2**30
    equations: int = 1_000_000
    nesting: int = 64
