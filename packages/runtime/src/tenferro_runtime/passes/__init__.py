"""Passes: pure functions from programs to programs, one page each, and the order in which they run."""

from tenferro_runtime._program import Program
from tenferro_runtime.passes.common_subexpressions import share_common_subexpressions
from tenferro_runtime.passes.constants import fold_constants
from tenferro_runtime.passes.dead_code import remove_dead_code
from tenferro_runtime.passes.identities import remove_identities
from tenferro_runtime.passes.inline import inline_calls

__all__ = [
    "PASSES",
    "fold_constants",
    "inline_calls",
    "optimise",
    "remove_dead_code",
    "remove_identities",
    "share_common_subexpressions",
]

PASSES = (
    inline_calls,
    remove_dead_code,
    remove_identities,
    fold_constants,
    share_common_subexpressions,
    remove_dead_code,
)
"""The standard order: calls hide equal work, dead work is not worth folding, folding and sharing leave dead ends."""


def optimise(program: Program) -> Program:
    """The program after the standard passes."""
    for run in PASSES:
        program = run(program)
    return program
