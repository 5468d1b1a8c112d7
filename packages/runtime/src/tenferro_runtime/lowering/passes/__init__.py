"""Passes over loop nests that keep every bit, in the order in which they run.

`_fuse_nests` (one loop for several), `_forward_loads` (no number twice), `_dead_code` (nothing for nobody). `_contents`
and `_footprint` say what statements contain, `_conflicts` whether iterations meet in memory.
"""

from __future__ import annotations

from dataclasses import replace

from tenferro_runtime.lowering.passes._dead_code import dead_code
from tenferro_runtime.lowering.passes._forward_loads import forward_loads
from tenferro_runtime.lowering.passes._fuse_nests import fuse_nests
from tenferro_tensor.loop_ir import LoopFunction

__all__ = ["dead_code", "forward_loads", "fuse_nests", "improved"]


def improved(function: LoopFunction) -> LoopFunction:
    """The function after all passes: the same bits in less time."""
    return dead_code(replace(function, body=forward_loads(fuse_nests(function.body))))
