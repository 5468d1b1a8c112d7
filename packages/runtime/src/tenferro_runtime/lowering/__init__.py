"""Lowering: programs of array operations become loop nests over buffers and numbers in registers (`LoopIR`).

In the order of use: `_lower` (the entry point), `_lowering` (equation by equation, with the rule of writing in place),
`_values` (numbers, views of memory, formulas), `_writer` (statements, and facts about indices); then the rules:
`_elementwise`, `_views`, `_reductions`, `_sorting`, `_products`, `_indexing`, `_joining`, `_branches`, `_loops`, and
`_calls` for operations that remain kernels; `_overwriting` lets outputs reuse the memory of inputs. Families register
rules for their primitives with ``Registry.loops``; a rule takes a `Step`.
"""

from tenferro_runtime.lowering import (  # noqa: F401 - rules register themselves
    _branches,
    _indexing,
    _joining,
    _loops,
    _products,
    _reductions,
    _sorting,
    _views,
)
from tenferro_runtime.lowering._calls import call, call_into
from tenferro_runtime.lowering._lower import by_expansion, lower
from tenferro_runtime.lowering._lowering import Step
from tenferro_runtime.lowering._values import Formula, Lowered, Numbers, Stored, copied, kept, numbers, stored, write
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


def __dir__() -> list[str]:
    return __all__.copy()
