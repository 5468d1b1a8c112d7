"""Lowering: programs of array operations become loop nests over buffers and numbers in registers (`LoopIR`).

In the order of use: `_lower` (the door), `_lowering` (equation by equation; the rule of writing in place), `_values`
(numbers, views of memory, formulas), `_writer` (statements, and what is known about indices); then the rules:
`_elementwise`, `_views`, `_reductions`, `_products`, `_indexing`, `_joining`, `_branches`, `_loops`, and `_calls` for
what is left to kernels.
"""

from tenferro_runtime.lowering import (  # noqa: F401 - rules register themselves
    _branches,
    _indexing,
    _joining,
    _loops,
    _products,
    _reductions,
    _views,
)
from tenferro_runtime.lowering._lower import lower

__all__ = ["lower"]
