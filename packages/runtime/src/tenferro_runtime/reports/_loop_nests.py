"""`LoopNests`: a program as loops over memory and numbers in registers, beside the user's lines."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.reports._table import text_card
from tenferro_tensor.loop_ir import LoopFunction


@dataclass(frozen=True, slots=True, repr=False)
class LoopNests:
    """The loop nests of a program; prints as text, and as such in a notebook.

    Attributes:
        function: the loop nests as data.
        text: one line for each statement, with the line of user code where it differs from the one above.
    """

    function: LoopFunction
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return text_card("Loop nests of a program", self.text)
