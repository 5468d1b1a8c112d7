"""`LoopNests`: a program as loop nests over buffers and registers, next to the user's lines."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.reports._table import Report
from tenferro_tensor.loop_ir import LoopFunction


@dataclass(frozen=True, slots=True, repr=False)
class LoopNests(Report):
    """The loop nests of a program; prints as text.

    Attributes:
        function: the loop nests as data.
        text: one line for each statement, with the user's line if it differs from that above.
    """

    _heading = "Loop nests of a program"

    function: LoopFunction
    text: str

    def __repr__(self) -> str:
        return self.text
