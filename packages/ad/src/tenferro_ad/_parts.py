"""Cotangents of many small slices of one large value: added to one buffer, each to its place.

Padding each to the whole, and adding the results, would take the time of the whole value for each slice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenferro_tensor import Spec, Tensor
from tenferro_tensor.calls import state

Place = tuple[slice, ...]

_new = object.__new__


class Parts:
    """The sum of concrete cotangents of slices of one value, and of others of the whole.

    Attributes:
        spec: that of the value.
        place: where the first part belongs.
        first: the first part.
        pad: makes the sum if there is no other part.
        memory: the sum, from the second part on; it belongs to this object.
    """

    __slots__ = ("first", "memory", "pad", "place", "spec")

    def __init__(self, spec: Spec, place: Place, first: Tensor, pad: Callable[[Tensor], Tensor]) -> None:
        self.spec, self.place, self.first, self.pad = spec, place, first, pad
        self.memory: np.ndarray[Any, Any] | None = None

    def _add_to(self, memory: np.ndarray[Any, Any]) -> None:
        if self.memory is None:
            memory[self.place] += self.first._data
        else:
            memory += self.memory

    def _started(self) -> np.ndarray[Any, Any]:
        if self.memory is None:
            memory: np.ndarray[Any, Any] = np.zeros(self.spec.shape, self.spec.dtype)
            self._add_to(memory)
            self.memory = memory
        return self.memory

    def __add__(self, other: Any) -> Any:
        if other.__class__ is Parts and other.spec is self.spec:
            other._add_to(self._started())
            return self
        if other.__class__ is Tensor and other.spec is self.spec:
            self._started()[...] += other._data
            return self
        return self.whole() + other

    __radd__ = __add__

    def whole(self) -> Tensor:
        """The cotangent of the value."""
        if self.memory is None:
            return self.pad(self.first)
        found: Tensor = _new(Tensor)
        found._data, found.spec = self.memory, self.spec
        return found


state.parts = Parts
