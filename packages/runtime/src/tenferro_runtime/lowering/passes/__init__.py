"""Passes over loop nests that keep every bit, in the order in which they run.

`_order_loops` (along memory; at the end, the two along which arrays are read innermost), `_swap_copies` (two buffers
in place of a copy in each iteration; `_windows` knows the nests of such copies), `_fuse_nests` (one loop for
several), `_forward_loads` (no number twice), `_dead_code` (nothing for nobody), `_collapse_loops` (one level for
two), `_free_loops` (any order where iterations do not meet), `_pack_columns` (next to each other what is read again and
again). `_reuse_memory` comes last, when it is known whose memory outputs lie in. `_contents` and `_footprint` say what
statements contain, `_conflicts` whether iterations meet in memory.
"""

from __future__ import annotations

from dataclasses import replace

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
from tenferro_tensor.loop_ir import LoopFunction

__all__ = [
    "Footprints",
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
]


def improved(function: LoopFunction, *, cached: bool = True) -> LoopFunction:
    """The function after all passes but the last: the same bits in less time.

    Args:
        function: what to improve.
        cached: whether loops go along caches; a GPU runs them at once.
    """
    function = swap_copies(replace(function, body=order_loops(function.body)) if cached else function)
    function = dead_code(replace(function, body=forward_loads(fuse_nests(function.body))))
    function = free_loops(replace(function, body=collapse_loops(function.body)))
    if not cached:
        return function
    function = dead_code(pack_columns(function))
    return replace(function, body=pair_loops(function.body))
