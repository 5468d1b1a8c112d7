"""Lowering: programs of array operations become loop nests over buffers and numbers in registers (`LoopIR`).

`rolling` makes loops of repeated equations before it, and `native` decides which programs run as one native function of
their loop nests. In the order of use: `_lower` (the entry point), `_lowering` (equation by equation, with the rule of
writing in place), `_values` (numbers, views of memory, formulas), `_writer` (statements, and facts about indices); then
the rules: `_elementwise`, `_views`, `_reductions`, `_sorting`, `_products`, `_indexing`, `_joining`, `_branches`,
`_loops`, and `_calls` for operations that remain kernels; `_overwriting` lets outputs reuse the memory of inputs.
Families register rules for their primitives with ``Registry.loops``; a rule takes a `Step`.

All of it is imported on first use: programs that never become loop nests do not need it.
"""

from typing import TYPE_CHECKING

from tenferro_tensor_core.deferred import deferred

if TYPE_CHECKING:
    from tenferro_runtime.lowering._calls import call, call_into
    from tenferro_runtime.lowering._lower import by_expansion, lower
    from tenferro_runtime.lowering._lowering import Step
    from tenferro_runtime.lowering._values import (
        Formula,
        Lowered,
        Numbers,
        Stored,
        copied,
        kept,
        numbers,
        stored,
        write,
    )
    from tenferro_runtime.lowering._writer import LoopWriter

__all__ = [
    "Formula",
    "LoopWriter",
    "Lowered",
    "Numbers",
    "Step",
    "Stored",
    "by_expansion",
    "call",
    "call_into",
    "copied",
    "kept",
    "lower",
    "numbers",
    "stored",
    "write",
]

_deferred = deferred(
    __name__,
    {
        "_calls": "call call_into",
        "_lower": "by_expansion lower",
        "_lowering": "Step",
        "_values": "Formula Lowered Numbers Stored copied kept numbers stored write",
        "_writer": "LoopWriter",
    },
)

if not TYPE_CHECKING:
    __getattr__ = _deferred


def __dir__() -> list[str]:
    return __all__.copy()
