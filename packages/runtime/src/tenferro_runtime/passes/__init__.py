"""Passes: pure functions from programs to programs, one page each, and the order in which they run."""

from tenferro_runtime.ir._program import Program
from tenferro_runtime.passes._kinds import Pass, Rearranging, Rounding, keeping_bits, keeping_layout
from tenferro_runtime.passes._prunings import pruned
from tenferro_runtime.passes.accumulate import accumulate
from tenferro_runtime.passes.algebra import simplify, simplify_rounding
from tenferro_runtime.passes.common_subexpressions import share_common_subexpressions
from tenferro_runtime.passes.constants import fold_constants, use_literals
from tenferro_runtime.passes.contractions import fold_into_contractions
from tenferro_runtime.passes.dead_code import prune_outputs, remove_dead_code
from tenferro_runtime.passes.guards import simplify_guards
from tenferro_runtime.passes.identities import remove_identities
from tenferro_runtime.passes.inline import inline_calls
from tenferro_runtime.passes.layout import rearrange_layout, simplify_layout
from tenferro_runtime.passes.reuse import reuse_outputs
from tenferro_runtime.passes.schedule import schedule
from tenferro_runtime.passes.updates import put_off_updates

__all__ = [
    "PASSES",
    "Pass",
    "Rearranging",
    "Rounding",
    "accumulate",
    "fold_constants",
    "fold_into_contractions",
    "inline_calls",
    "keeping_bits",
    "keeping_layout",
    "optimise",
    "prune_outputs",
    "pruned",
    "put_off_updates",
    "rearrange_layout",
    "remove_dead_code",
    "remove_identities",
    "reuse_outputs",
    "schedule",
    "share_common_subexpressions",
    "simplify",
    "simplify_guards",
    "simplify_layout",
    "simplify_rounding",
    "use_literals",
]


def __dir__() -> list[str]:
    return __all__.copy()


PASSES: tuple[Pass, ...] = (
    inline_calls,
    remove_dead_code,
    prune_outputs,
    remove_identities,
    fold_constants,
    use_literals,
    simplify_layout,
    rearrange_layout,
    fold_into_contractions,
    simplify,
    simplify_rounding,
    accumulate,
    share_common_subexpressions,
    reuse_outputs,
    remove_dead_code,
    simplify_guards,
    schedule,
    put_off_updates,
)
"""The standard order: inlining exposes equal work, dead work is not folded, folding and sharing leave dead code."""

_KEEPING_BITS = keeping_bits(PASSES)


def optimise(program: Program) -> Program:
    """Run the standard passes that preserve every bit; a runtime also has passes that round.

    Args:
        program: the program.

    Returns:
        The optimized program.
    """
    for run in _KEEPING_BITS:
        program = run(program)
    return program
