"""`NumpyCalls`: NumPy functions on values of every kind, by ``__array_ufunc__`` and ``__array_function__``.

``np.sin(x)``, ``np.mean(x)`` and ``ndarray * x`` call the functions of the namespace: the result is a tensor, and
derivatives pass. Calls with keywords, and first calls of a function, go to `_numpy_adapters`, which is imported on
first use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from tenferro_tensor_core.forks import importing
from tenferro_tensor_core.tracebacks import hide_frames

UFUNCS: Final[dict[np.ufunc, Callable[..., Any]]] = {}
"""The namespace's function for each ufunc called so far; bounded by the number of functions."""

_PLAIN: Final = frozenset({np.ndarray, np.float64, float, int, complex, bool})
"""Classes of the usual operands besides tensors, which need no further check."""


@cache
def _adapters() -> Any:
    with importing():
        return import_module("tenferro_tensor._numpy_adapters")


class NumpyCalls:
    """The NumPy protocols of operands."""

    __slots__ = ()
    __array_priority__ = 1000  # for libraries that still choose a function by it

    def _is_looked_at(self) -> bool:
        """Whether the value is only inspected, so that no derivative can be lost."""
        return False

    def __array_ufunc__(self, ufunc: Any, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
        function = UFUNCS.get(ufunc)
        try:
            if function is not None and not kwargs and method == "__call__":
                for x in inputs:
                    if x.__class__ not in _PLAIN and not isinstance(x, (NumpyCalls, np.ndarray, np.generic)):
                        break
                else:
                    return function(*inputs)
            return _adapters().call_ufunc(ufunc, method, inputs, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        try:
            return _adapters().call_function(function, types, args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise
