"""Counts of expensive operations that a replay must not repeat, for tests and for finding out what costs time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tenferro_tensor.backends import modules_compiled


@dataclass(slots=True)
class Counters:
    """Counts since the process started; exact while only one thread counts.

    Attributes:
        traces: functions recorded as programs.
        renders: programs turned into Python functions.
        binds: programs prepared for sizes.
    """

    traces: int = 0
    renders: int = 0
    binds: int = 0

    @property
    def compiles(self) -> int:
        """Number of machine code modules that backends have loaded, compiled by this process or earlier."""
        return modules_compiled()


COUNTERS: Final = Counters()
"""The counts of the process."""
