"""Errors of program files, and limits on what is read."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_tensor_core import TenferroError


class ProgramFileError(TenferroError, ValueError):
    """A program cannot be written to a file, or a file cannot be read as a program.

    Raised for damaged files, files of a newer version, primitives that are not installed or that another process could
    not find by name, and files that exceed the limits. No part of the file has run.
    """


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits on what `load` reads, so that an untrusted file cannot exhaust the machine.

    Attributes:
        text: bytes of the unpacked description of the program.
        constants: bytes of all constants together.
        equations: number of equations, including those of nested programs.
        nesting: depth of nested programs, containers and sizes.
    """

    text: int = 256 * 2**20
    constants: int = 16 * 2**30
    equations: int = 1_000_000
    nesting: int = 64
