"""`LoopNests`: a program as loop nests over buffers and registers, next to the user's lines."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.reports._table import text_card
from tenferro_tensor.loop_ir import LoopFunction


@dataclass(frozen=True, slots=True, repr=False)
class LoopNests:
    """The loop nests of a program; prints as text.

    Attributes:
        function: the loop nests as data.
        text: one line for each statement, with the user's line if it differs from that above.
    """

    function: LoopFunction
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return text_card("Loop nests of a program", self.text)
