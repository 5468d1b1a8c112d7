"""The value inside batches."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching._batched import Batched
from tenferro_tensor import Array


def inner_array(x: Any) -> Array:
    """The array of all lanes of all batches that a value belongs to, or the value itself.

    Functions that depend on the kind of their operand (concrete, differentiated or traced) use it to behave under
    `vmap` as they do outside.

    Args:
        x: any value.

    Returns:
        The array.
    """
    while x.__class__ is Batched:
        x = x.value
    return x  # type: ignore[no-any-return]
