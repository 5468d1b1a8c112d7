"""The function of an equation, as solvers are given it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_ad.implicit._values import fitting, nested
from tenferro_runtime.extension import Program
from tenferro_runtime.ir import applied, here
from tenferro_runtime.trees import TreeDef, unflatten


class Applied:
    """A function that solvers are given: a program with its values from outside.

    Attributes:
        program: the program.
        consts: what it takes first.
        tree: structure of what it takes then, and of what it returns.
        calls: how often it has been called.
    """

    def __init__(self, program: Program, consts: Sequence[Any], tree: TreeDef) -> None:
        self.program, self.consts, self.tree, self.calls = program, tuple(consts), tree, 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        leaves = nested(
            x, self.tree, f"the function that the solver is given was called{here()} with {{0}}, but takes {{1}}"
        )
        specs = self.program.inputs[len(self.consts) :]
        message = "the function that the solver is given takes {1!r}, not {0!r}; convert the argument"
        values = [fitting(leaf, spec, message) for leaf, spec in zip(leaves, specs, strict=True)]
        return unflatten(self.tree, applied(self.program, [*self.consts, *values]))
