"""Values during import: arrays, and constants with equal elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tenferro_runtime.extension import Array, Spec, catalog, tensor


class Splat(NamedTuple):
    """A constant of equal elements, which becomes an array only if an operation needs one.

    Attributes:
        element: the element, a 0-d array.
        spec: spec of the whole array.
    """

    element: np.ndarray[Any, Any]
    spec: Spec

    @property
    def number(self) -> Any:
        """The element as a Python number."""
        return self.element.item()

    def array(self) -> Array:
        """Return the whole array."""
        scalar = tensor(self.element)
        return catalog.broadcast_in_dim(scalar, shape=self.spec.shape, dims=()) if self.spec.ndim else scalar


Value = Array | Splat


def as_array(x: Value) -> Any:
    """Return a value as an array."""
    return x.array() if isinstance(x, Splat) else x


def arrays(xs: Sequence[Value]) -> list[Any]:
    """Return values as arrays."""
    return [as_array(x) for x in xs]


def known_integers(x: Value) -> tuple[int, ...] | None:
    """Return the elements of a constant vector or scalar of integers; ``None`` if they are not known."""
    if isinstance(x, Splat):
        return (int(x.number),) * int(x.array().size)
    if x.level or not x.spec.place.on_host:
        return None
    return tuple([int(n) for n in np.asarray(x).ravel()])
