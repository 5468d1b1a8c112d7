"""Batching: makes a function, an operation or a program of one lane one of all lanes of a batch.

`vmap` creates values whose operations act on all lanes by the batching rule of each primitive. Rules are registered
with ``registry.batching(primitive, rule)``; `on_stacks` and `shifting` return rules of common kinds.
"""

from tenferro_runtime.batching._batched import Batched
from tenferro_runtime.batching._inner import inner_array
from tenferro_runtime.batching._lanes import lane_by_lane
from tenferro_runtime.batching._programs import batched_body, calling
from tenferro_runtime.batching._records import (
    BatchingRule,
    Shared,
    all_with_lanes,
    on_stacks,
    shifted,
    shifting,
    with_lanes,
)
from tenferro_runtime.batching._vmap import vmap
from tenferro_runtime.batching.rules import how_batched

__all__ = [
    "Batched",
    "BatchingRule",
    "Shared",
    "all_with_lanes",
    "batched_body",
    "calling",
    "how_batched",
    "inner_array",
    "lane_by_lane",
    "on_stacks",
    "shifted",
    "shifting",
    "vmap",
    "with_lanes",
]


def __dir__() -> list[str]:
    return __all__.copy()
