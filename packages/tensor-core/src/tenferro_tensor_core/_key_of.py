"""`key_of`: a value that a user gave, as a key of a table.

For Python ``1 == 1.0 == True`` and ``0.0 == -0.0``, but ``nan != nan``. A table under such keys returns the entry that
it made for another value, or makes a new one each time. Every table whose keys hold metadata, static arguments,
literals or values of closures therefore takes them through `key_of`.
"""

import dataclasses
from collections.abc import Callable, Hashable
from struct import Struct
from typing import Any, Final

import numpy as np

_PLAIN: Final = frozenset({int, str})
"""Classes whose values are their own keys. All other keys begin with a class, which no plain key holds."""

_KINDS: Final = 1024
"""Number of classes whose way to a key is remembered."""

_bits: Final = Struct("<d").pack
"""The bits of a float; NaN has a sign, which `float.hex` does not show."""

_ways: dict[type, Callable[[type, Any], Any]] = {}


def key_of(value: Any) -> Any:
    """A key that two values share only if they are of one class and cannot be distinguished.

    Numbers count by class and bits, NumPy's by dtype as well; tuples, frozen sets, slices and frozen dataclasses by
    their parts; everything else by class and its own equality. A value that is not hashable has a key that is not
    hashable either (but for slices, which not every version of Python hashes).

    >>> len({key_of(v) for v in (1, 1.0, True, np.int64(1), 1 + 0j, 0.0, -0.0)})
    7
    >>> key_of((2, (float("nan"),))) == key_of((2, (float("nan"),)))
    True
    """
    cls = value.__class__
    if cls is int or cls is str:
        return value
    if cls is tuple:
        return value if _PLAIN.issuperset(map(type, value)) else tuple([key_of(v) for v in value])
    if cls is float:
        return cls, _bits(value)
    way = _ways.get(cls)
    return (_way(cls) if way is None else way)(cls, value)


def _way(cls: type) -> Callable[[type, Any], Any]:
    way = next((way for base, way in _BY_BASE if issubclass(cls, base)), _itself)
    if way is _itself and dataclasses.is_dataclass(cls) and issubclass(cls, Hashable):
        way = _itself if cls.__eq__ is object.__eq__ else _fields
    if len(_ways) >= _KINDS:
        _ways.clear()
    _ways[cls] = way
    return way


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
    except TypeError:  # a class that hashes by itself what its fields do not
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
