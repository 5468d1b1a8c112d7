"""Arrays that depend only on a shape, for use in rules; with symbolic sizes they are ops of the trace."""

from __future__ import annotations

from typing import Any

from tenferro_tensor import Spec
from tenferro_tensor import catalog as c
from tenferro_tensor_core import int64


def falses_like(x: Any) -> Any:
    """Booleans of the shape of `x`, all false."""
    return c.bitwise_and(c.is_nan(x), False)


def positions(spec: Spec, axis: int) -> Any:
    """The index of each element along an axis, as int64."""
    return c.iota(shape=spec.shape, dtype=int64, axis=axis, place=spec.place)
