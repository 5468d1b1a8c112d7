"""How often the process has done what a replay must not do: for tests and for people who look for what costs time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tenferro_tensor.backends import modules_compiled


@dataclass(slots=True)
class Counters:
    """Counts since the process began; exact as long as one thread counts.

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
        """Modules of machine code that backends have loaded, compiled now or before."""
        return modules_compiled()


COUNTERS: Final = Counters()
"""The counts of the process."""
