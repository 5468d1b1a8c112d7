"""`Step`: one line of a rendered program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tenferro_runtime.ir._bind import BindingIndex
from tenferro_runtime.ir._program import Equation, Operand


class Step(NamedTuple):
    """One call of a rendered program: ``results = function(*operands, *sizes)``.

    With `entry`, the function is found when the program is bound, and is that entry of Z. With `text`, the right-hand
    side is that text, with operands for ``{0}``, ``{1}`` and so on. Sizes are entries of Z or variables.
    """

    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    results: tuple[int, ...]
    many: bool
    equation: Equation
    sizes: tuple[BindingIndex | int, ...] = ()
    entry: BindingIndex | None = None
    text: str = ""

    @property
    def reads(self) -> list[int]:
        """The variables that the step reads."""
        return [v for v in (*self.operands, *self.sizes) if v.__class__ is int]


def unused(*raws: Any) -> Any:
    """The function of a step whose kernel is an entry of Z or inline text; never called."""
    raise AssertionError("the kernel of this step is an entry of Z or inline text")
