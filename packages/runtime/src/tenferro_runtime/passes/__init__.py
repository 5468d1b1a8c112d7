"""Passes: pure functions from programs to programs, one page each, and the order in which they run."""

from tenferro_runtime._program import Program
from tenferro_runtime.passes._kinds import Pass, Rounding, keeping_bits
from tenferro_runtime.passes.algebra import simplify, simplify_rounding
from tenferro_runtime.passes.common_subexpressions import share_common_subexpressions
from tenferro_runtime.passes.constants import fold_constants
from tenferro_runtime.passes.contractions import fold_into_contractions
from tenferro_runtime.passes.dead_code import remove_dead_code
from tenferro_runtime.passes.identities import remove_identities
from tenferro_runtime.passes.inline import inline_calls
from tenferro_runtime.passes.layout import simplify_layout

__all__ = [
    "PASSES",
    "Pass",
    "Rounding",
    "fold_constants",
    "fold_into_contractions",
    "inline_calls",
    "keeping_bits",
    "optimise",
    "remove_dead_code",
    "remove_identities",
    "share_common_subexpressions",
    "simplify",
    "simplify_layout",
    "simplify_rounding",
]

PASSES: tuple[Pass, ...] = (
    inline_calls,
    remove_dead_code,
    remove_identities,
    fold_constants,
    simplify_layout,
    fold_into_contractions,
    simplify,
    simplify_rounding,
    share_common_subexpressions,
    remove_dead_code,
)
"""The standard order: calls hide equal work, dead work is not worth folding, folding and sharing leave dead ends."""

_KEEPING_BITS = keeping_bits(PASSES)


def optimise(program: Program) -> Program:
    """The program after the standard passes that keep every bit; a runtime has those that round, too."""
    for run in _KEEPING_BITS:
        program = run(program)
    return program
