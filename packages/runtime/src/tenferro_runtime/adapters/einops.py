"""einops' backend for values of every kind; importing this module registers it.

einops finds the subclasses of its `AbstractBackend`, and asks each whether an array belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from tenferro_runtime._namespace import export
from tenferro_tensor import Array, Size, functions
from tenferro_tensor_core import isdtype

_abstract: Final[Any] = import_module("einops._backends").AbstractBackend


class _EinopsBackend(_abstract):  # type: ignore[misc]  # einops is not at hand for type checkers
    """The array functions under einops' names."""

    framework_name = "tenferro_runtime"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Array)

    def shape(self, x: Any) -> Any:
        # A list is not hashable: einops then computes with symbolic sizes instead of looking up a recipe by numbers.
        return list(x.shape) if any(d.__class__ is Size for d in x.shape) else x.shape

    def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
        return getattr(functions, operation)(x, axis=tuple(axes))

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        return functions.stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        return functions.expand_dims(x, axis=new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, Any]) -> Any:
        for position in pos2len:  # in ascending order
            x = functions.expand_dims(x, axis=position)
        return functions.broadcast_to(x, tuple([pos2len.get(i, d) for i, d in enumerate(x.shape)]))

    def tile(self, x: Any, repeats: tuple[Any, ...]) -> Any:
        return functions.tile(x, repeats)

    def concat(self, tensors: Sequence[Any], axis: int) -> Any:
        return functions.concat(tensors, axis=axis)

    def is_float_type(self, x: Any) -> bool:
        return isdtype(x.dtype, ("real floating", "complex floating"))

    def einsum(self, pattern: str, *x: Any) -> Any:
        return export("einsum")(pattern, *x)

    def arange(self, start: int, stop: int) -> Any:
        return functions.arange(start, stop)

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Any:
        return functions.asarray(x)

    def to_numpy(self, x: Any) -> np.ndarray[Any, Any]:
        return np.asarray(x)
