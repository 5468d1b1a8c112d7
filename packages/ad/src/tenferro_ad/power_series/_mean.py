"""What stands for all lanes of a batch: the mean where what follows is linear, any lane where all have one value."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.batching import Batched
from tenferro_tensor.functions import mean


def mean_over_lanes(term: Any, level: int) -> Any:
    """The mean over the lanes of the batch of a level; a value that is the same in all lanes is its own."""
    return mean(term.value, axis=0) if term.__class__ is Batched and term.level == level else term


def first_lane(value: Any, level: int) -> Any:
    """A value that is the same in all lanes of the batch of a level: decompositions that follow tangents have lanes."""
    return value.value[0] if value.__class__ is Batched and value.level == level else value
