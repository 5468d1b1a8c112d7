"""What a value is without its batches."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching._batched import Batched


def inner_array(x: Any) -> Any:
    """The array of all lanes of all batches that a value belongs to, or the value itself.

    Functions that choose by the kind of their operand, concrete or differentiated or traced, choose under `vmap` what
    they would choose outside of it.
    """
    while x.__class__ is Batched:
        x = x.value
    return x
