"""`key_of`: user-supplied values as dictionary keys.

In Python ``1 == 1.0 == True`` and ``0.0 == -0.0``, but ``nan != nan``: a table with such keys would return the entry of
another value, or miss every time. Every table whose keys hold metadata, static arguments, literals or closure values
therefore passes them through `key_of`.
"""

import dataclasses
from collections.abc import Callable, Hashable
from struct import Struct
from typing import Any, Final

import numpy as np

_PLAIN: Final = frozenset({int, str})
"""Classes whose values are their own keys. All other keys begin with a class, which no plain key holds."""

_MAX_CLASSES: Final = 1024
"""Largest number of classes whose key function is cached."""

_bits: Final = Struct("<d").pack
"""The bits of a float; NaN has a sign, which `float.hex` does not show."""

_key_functions: dict[type, Callable[[type, Any], Any]] = {}


def key_of(value: Any) -> Hashable:
    """Return a key that two values share only if they have one class and are indistinguishable.

    Numbers are compared by class and bits, NumPy scalars also by dtype; tuples, frozen sets, slices and frozen
    dataclasses by their parts; everything else by class and its own equality. The key of an unhashable value is
    unhashable, except for slices, which not every version of Python hashes.

    Args:
        value: any value.

    Returns:
        The key.

    >>> len({key_of(v) for v in (1, 1.0, True, np.int64(1), 1 + 0j, 0.0, -0.0)})
    7
    >>> key_of((2, (float("nan"),))) == key_of((2, (float("nan"),)))
    True
    """
    cls = value.__class__
    if cls is int or cls is str:
        return value  # type: ignore[no-any-return]
    if cls is tuple:
        return value if _PLAIN.issuperset(map(type, value)) else tuple([key_of(v) for v in value])
    if cls is float:
        return cls, _bits(value)
    key = _key_functions.get(cls)
    return (_key_function(cls) if key is None else key)(cls, value)  # type: ignore[no-any-return]


def _key_function(cls: type) -> Callable[[type, Any], Any]:
    key = next((key for base, key in _BY_BASE if issubclass(cls, base)), _itself)
    if key is _itself and dataclasses.is_dataclass(cls) and issubclass(cls, Hashable):
        key = _itself if cls.__eq__ is object.__eq__ else _fields
    if len(_key_functions) >= _MAX_CLASSES:
        _key_functions.clear()
    _key_functions[cls] = key
    return key


def _itself(cls: type, value: Any) -> Any:
    return cls, value


def _real(cls: type, value: Any) -> Any:
    return cls, _bits(value)


def _complex(cls: type, value: Any) -> Any:
    return cls, _bits(value.real), _bits(value.imag)


def _numpy(cls: type, value: Any) -> Any:
    return cls, value.dtype, value.tobytes()


def _parts(cls: type, value: Any) -> Any:
    return (cls, *map(key_of, value))


def _set(cls: type, value: Any) -> Any:
    return cls, frozenset(map(key_of, value))


def _slice(cls: type, value: Any) -> Any:
    return cls, key_of(value.start), key_of(value.stop), key_of(value.step)


def _fields(cls: type, value: Any) -> Any:
    key = (cls, *[key_of(getattr(value, f.name)) for f in dataclasses.fields(value) if f.compare])
    try:
        hash(key)
    except TypeError:  # the class defines __hash__ although a field is unhashable
        return cls, value
    return key


_BY_BASE: Final = (
    (np.generic, _numpy),
    (float, _real),
    (complex, _complex),
    (tuple, _parts),
    (frozenset, _set),
    (slice, _slice),
)
