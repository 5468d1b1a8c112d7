"""Passes over loop nests that preserve every bit, in the order in which they run.

`_order_loops` (loop interchange for unit stride), `_swap_copies` (double buffering instead of a copy in each iteration;
`_windows` recognizes such copies), `_fuse_nests` (loop fusion), `_forward_loads` (load forwarding and common
subexpressions), `_dead_code`, `_update_in_place` (one buffer instead of two that are swapped), `_collapse_loops` (two
levels become one), `_free_loops` (marks independent iterations), `_pack_columns` (packs repeatedly read columns). Two
come last, when the memory of outputs is known: `_reuse_memory` and `_bound_accesses`, which keeps all accesses inside
their buffers.
`_contents` and `_footprint` describe the contents of statements, `_conflicts` dependences between iterations.
"""

from __future__ import annotations

from dataclasses import replace

from tenferro_runtime.lowering.passes._bound_accesses import bound_accesses
from tenferro_runtime.lowering.passes._collapse_loops import collapse_loops
from tenferro_runtime.lowering.passes._dead_code import dead_code
from tenferro_runtime.lowering.passes._footprint import Footprints
from tenferro_runtime.lowering.passes._forward_loads import forward_loads
from tenferro_runtime.lowering.passes._free_loops import free_loops
from tenferro_runtime.lowering.passes._fuse_nests import fuse_nests
from tenferro_runtime.lowering.passes._order_loops import order_loops, pair_loops
from tenferro_runtime.lowering.passes._pack_columns import pack_columns
from tenferro_runtime.lowering.passes._reuse_memory import may_take_over, reuse_memory
from tenferro_runtime.lowering.passes._swap_copies import swap_copies
from tenferro_runtime.lowering.passes._update_in_place import update_in_place
from tenferro_tensor.loop_ir import LoopFunction

__all__ = [
    "Footprints",
    "bound_accesses",
    "pair_loops",
    "collapse_loops",
    "dead_code",
    "forward_loads",
    "free_loops",
    "fuse_nests",
    "improved",
    "may_take_over",
    "order_loops",
    "pack_columns",
    "reuse_memory",
    "swap_copies",
    "update_in_place",
]


def __dir__() -> list[str]:
    return __all__.copy()


def improved(function: LoopFunction, *, cached: bool = True) -> LoopFunction:
    """Run all passes but the last; the results have equal bits.

    Args:
        function: the function.
        cached: whether to order loops for caches; a GPU runs them in parallel.

    Returns:
        The function.
    """
    function = swap_copies(replace(function, body=order_loops(function.body)) if cached else function)
    function = dead_code(replace(function, body=forward_loads(fuse_nests(function.body))))
    function = update_in_place(function)
    function = free_loops(replace(function, body=collapse_loops(function.body)))
    if not cached:
        return function
    function = dead_code(pack_columns(function))
    return replace(function, body=pair_loops(function.body))
