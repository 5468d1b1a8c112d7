"""Concrete tensors as arguments of functions that numba compiles: their memory, as ``np.asarray(x)`` shows it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np

from tenferro_tensor import Tensor

_types: Final[Any] = import_module("numba").types
_extending: Final[Any] = import_module("numba.extending")


class _TensorType(_types.Array):  # type: ignore[misc]  # numba has no types
    """The type of the array in the memory of a tensor."""


def _typeof(x: Tensor, c: Any) -> Any:
    array = _extending.typeof_impl(np.asarray(x), c)
    return _TensorType(array.dtype, array.ndim, array.layout, not array.mutable, f"Tensor of {array}", array.aligned)


def _unboxed(kind: Any, x: Any, c: Any) -> Any:
    convert = c.pyapi.unserialize(c.pyapi.serialize_object(np.asarray))
    array = c.pyapi.call_function_objargs(convert, (x,))
    found = c.unbox(_types.Array(kind.dtype, kind.ndim, kind.layout, not kind.mutable, None, kind.aligned), array)
    c.pyapi.decref(array)  # the native array holds it
    c.pyapi.decref(convert)
    return found


_extending.typeof_impl.register(Tensor)(_typeof)
_extending.register_model(_TensorType)(_extending.models.ArrayModel)
_extending.unbox(_TensorType)(_unboxed)
