"""The function of an equation, as passed to solvers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_ad.implicit._values import fitting, nested
from tenferro_runtime.extension import Program
from tenferro_runtime.ir import applied, here
from tenferro_runtime.trees import TreeDef, unflatten


class Applied:
    """A program with its captured values, as a function for solvers.

    Attributes:
        program: the program.
        consts: its first operands, the captured values.
        tree: structure of the remaining operands, and of the result.
        calls: number of calls.
    """

    def __init__(self, program: Program, consts: Sequence[Any], tree: TreeDef) -> None:
        self.program, self.consts, self.tree, self.calls = program, tuple(consts), tree, 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        leaves = nested(
            x, self.tree, f"the function passed to the solver was called{here()} with {{0}}, but takes {{1}}"
        )
        specs = self.program.inputs[len(self.consts) :]
        message = "the function passed to the solver takes {1!r}, not {0!r}; convert the argument"
        values = [fitting(leaf, spec, message) for leaf, spec in zip(leaves, specs, strict=True)]
        return unflatten(self.tree, applied(self.program, [*self.consts, *values]))
