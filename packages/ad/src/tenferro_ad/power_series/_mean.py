"""Reductions over the lanes of a batch: the mean, and the first of equal lanes."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching import Batched
from tenferro_tensor.functions import mean


def mean_over_lanes(term: Any, level: int) -> Any:
    """The mean over the lanes of the batch of a level; an unbatched value is returned unchanged."""
    return mean(term.value, axis=0) if term.__class__ is Batched and term.level == level else term


def first_lane(value: Any, level: int) -> Any:
    """The first lane of a value that is equal in all lanes, as in decompositions that depend on tangents."""
    return value.value[0] if value.__class__ is Batched and value.level == level else value
