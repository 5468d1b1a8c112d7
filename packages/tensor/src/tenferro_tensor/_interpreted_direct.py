"""Public functions, some with a direct form for concrete arrays in main memory, and ``x[key]``, which has one.

`_c/direct.c` is the same in C.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, Final

import numpy as np

from tenferro_tensor._interpreted import SCALARS, TensorBase, key_parts, state
from tenferro_tensor._interpreted_sharing import in_one, link
from tenferro_tensor_core.tracebacks import boundary, hide_frames

DIRECT_MAX_BYTES: Final = 1 << 18
"""Largest array in bytes for which NumPy's function is fastest."""

_PLAIN: Final = frozenset({*SCALARS, str, type(None)})
_MAX_DEPTH: Final = 3


class DirectFunction:
    """A public function, perhaps with a direct form.

    Attributes:
        function: the function on values of every kind.
        form: the same on raw arrays in main memory; `function` is called if it raises or returns ``None``. Or the op
            that is all the function calls, or ``None``.
        refused: called with the function, its error and the keywords of the call, returns the error to raise.
        most: bytes of the largest array that the form accepts.
        views: whether results may be views of the first argument.
        arity: number of operands if the form is an op, else -1.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[..., Any],
        form: Any,
        refused: Callable[..., Exception],
        most: int = 0,
        views: bool = False,
        arity: int = -1,
    ) -> None:
        self.function, self.form, self.most, self.views, self.arity = function, form, most, views, arity
        self._called = boundary(function)  # which calls `refused`

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.arity == len(args) and not named:
            return self.form(*args)
        if self.arity < 0 and self.form is not None and not state.open_scopes:
            found = _directly(self, args, named)
            if found is not None:
                return found
        try:
            return self._called(*args, **named)
        except Exception as error:
            hide_frames(error)
            raise

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, as functions are

    def __repr__(self) -> str:
        return repr(self.function)


class _Declined(Exception):
    """The call is left to the function."""


def _directly(f: DirectFunction, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of the form; ``None`` if the call is left to the function."""
    found: list[Any] = []
    try:
        raws = [_lowered(x, f.most, found, 0) for x in args]
        raws_named = {name: _lowered(x, f.most, found, 0) for name, x in named.items()}
        result = f.form(*raws, **raws_named) if found else None
        return None if result is None else _linked(_raised(result), args[0]) if f.views else _raised(result)
    except MemoryError:
        raise
    except Exception:
        return None


def _linked(found: Any, x: Any) -> Any:
    """Tensors after they were linked to the tensor whose memory they show."""
    for z in found if isinstance(found, (tuple, list)) else (found,):
        if x.__class__ is state.tensor and in_one(z._inside, x._inside) and z._inside.ndim:
            link(z, x)
    return found


def _host_raw(x: Any, most: int) -> Any:
    raw = x._data
    if x.spec.place is not state.host or getattr(raw, "nbytes", 0) > most:
        raise _Declined
    if raw.__class__ is not np.ndarray and not isinstance(raw, np.generic):
        raise _Declined
    return raw


def _lowered(x: Any, most: int, found: list[Any], depth: int) -> Any:
    """The raw form of an argument."""
    cls = x.__class__
    if cls is state.tensor:
        found.append(x)
        return _host_raw(x, most)
    if cls in _PLAIN or isinstance(x, np.dtype):
        return x
    if (cls is tuple or cls is list) and depth < _MAX_DEPTH:
        inner: list[Any] = []
        raws = tuple([_lowered(y, most, inner, depth + 1) for y in x])
        if inner and not all(isinstance(raw, (np.ndarray, np.generic, tuple)) for raw in raws):
            raise _Declined  # numbers among arrays are weakly typed
        found += inner
        return raws if inner else x
    raise _Declined


def _raised(raw: Any) -> Any:
    """The tensors for raw results."""
    if isinstance(raw, (tuple, list)):
        made = [_raised(r) for r in raw]
        return made if raw.__class__ is list else tuple(made) if raw.__class__ is tuple else type(raw)(*made)
    z = object.__new__(state.tensor)
    z._data, z.spec = raw, spec_of_raw(raw)
    return z


def spec_of_raw(raw: Any, /) -> Any:
    """The spec of a NumPy array or scalar in main memory.

    Args:
        raw: the array or scalar.

    Returns:
        The spec.

    Raises:
        TypeError: `raw` is neither.
    """
    if raw.__class__ is not np.ndarray and not isinstance(raw, np.generic):
        raise TypeError(f"expected a NumPy array, got {raw!r}")
    return state.spec(raw.shape, raw.dtype)


def forget_specs() -> None:
    """Clear the cache of specs of raw arrays; in Python there is none."""


def kept_specs() -> tuple[int, int]:
    """The number of cached specs of raw arrays, and the bound.

    Returns:
        Both numbers.
    """
    return 0, 0


_MAX_LIST_SIZE: Final = 64


def subscript(self: Any, key: Any) -> Any:
    """``x[key]`` of a concrete tensor."""
    if self.__class__ is state.tensor and not state.open_scopes and self._data.__class__ is np.ndarray:
        try:
            _host_raw(self, self._data.nbytes)
            raw = self._data[_lowered_key(key)]
            # Kernels round a single element with a negative stride differently; the function avoids it.
            if not (raw.shape == (1,) and raw.strides[0] < 0):
                return _linked(_raised(raw), self)
        except MemoryError:
            raise
        except Exception:
            pass
    return self._item(key)


def _lowered_key(key: Any) -> Any:
    if key_parts(key) is not None:
        return key
    return tuple(map(_lowered_part, key)) if key.__class__ is tuple else _lowered_part(key)


def _lowered_part(x: Any) -> Any:
    if x.__class__ is state.tensor:
        raw = _host_raw(x, 1 << 62)
        return int(raw) if not raw.ndim and raw.dtype.kind in "iu" else raw  # an integer gives a view
    if x.__class__ is list and len(x) <= _MAX_LIST_SIZE and all(i.__class__ is int for i in x):
        return x
    if key_parts(x) is None or x.__class__ is tuple:
        raise _Declined
    return x


TensorBase.__getitem__ = subscript  # type: ignore[misc]
