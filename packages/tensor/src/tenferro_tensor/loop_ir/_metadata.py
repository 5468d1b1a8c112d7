"""Metadata of ops, numbers and extents as text: exact, and the same in every process.

A value without such a form (a user's Python function) is numbered within the process, so two of them never share their
text. The code that calls them back does not depend on the number.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import Enum
from hashlib import blake2b
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tenferro_tensor._place import HOST, ComputeDevice, MemorySpace, Place
from tenferro_tensor._primitive import Op, Primitive
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import Dim, DimLike
from tenferro_tensor_core.forks import new_lock

CORE: Final = "tenferro_tensor."
"""Prefix of the modules whose primitives appear without their module."""

NAN: Final = struct.pack("<d", float("nan"))
"""The bits of the NaN that is written ``nan``; other NaNs are written with their bits."""

_lock = new_lock()
_numbers = count()
_met: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_kept: list[tuple[Any, int]] = []


def extent(d: DimLike) -> str:
    """The full text of an extent; `str` of a `Dim` elides long ones."""
    return d.source({}) if isinstance(d, Dim) else str(d)


def extents(shape: tuple[DimLike, ...]) -> str:
    """The text of a shape, ``[n, 3]``."""
    return f"[{', '.join(map(extent, shape))}]"


def number(value: bool | int | float | complex) -> str:
    """The exact text of a number: ``repr``, except for NaNs with unusual bits."""
    if value.__class__ is complex:
        return f"complex({number(value.real)}, {number(value.imag)})"
    if value.__class__ is float and value != value and struct.pack("<d", value) != NAN:
        return f"nan:{struct.pack('>d', value).hex()}"
    return repr(value)


def content(array: np.ndarray[Any, Any]) -> str:
    """A digest of the elements of an array."""
    return blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()


def op_text(op: Op) -> str:
    """The text of an op with its metadata, ``reduce_sum[axes=(1,)]``."""
    p = op.primitive
    if not op.params:
        return _name(p)
    codec = REGISTRY.find("codec", p)
    params: Mapping[str, Any] = op.params if codec is None else codec.encode(dict(op.params))
    return f"{_name(p)}[{', '.join(f'{k}={_value(v)}' for k, v in params.items())}]"


def _name(p: Primitive) -> str:
    module = p._rule.__module__ or ""
    return p.name if module.startswith(CORE) else f"{module}.{p.name}" if p.family is None else p.family


def _value(value: Any) -> str:
    cls = value.__class__
    if value is None or cls in (bool, int, str):
        return repr(value)
    if cls in (float, complex):
        return number(value)
    if cls in (tuple, list):
        return f"({', '.join(map(_value, value))}{',' if len(value) == 1 else ''})"
    if cls is dict:
        return f"{{{', '.join(f'{_value(k)}: {_value(v)}' for k, v in value.items())}}}"
    if cls is frozenset:
        return f"{{{', '.join(sorted(map(_value, value)))}}}"
    if cls is slice:
        return f"slice({_value(value.start)}, {_value(value.stop)}, {_value(value.step)})"
    if isinstance(value, Dim):
        return extent(value)
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, Spec):
        return f"{value.dtype.name}{extents(value.shape)}{'' if value.place is HOST else f' at {_value(value.place)}'}"
    if isinstance(value, Place):
        return f"{value.memory_space} {value.compute_device}"
    if isinstance(value, MemorySpace | ComputeDevice):
        return str(value)
    if isinstance(value, Op):
        return op_text(value)
    if isinstance(value, Primitive):
        return f"primitive {_name(value)}"
    if isinstance(value, bytes):
        return blake2b(value, digest_size=16).hexdigest()
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, Enum):
        return str(value)
    # A program of the layer above is identified by its form, which has no names and source lines. A weak number has
    # a `value`.
    form = getattr(getattr(value, "structure", value), "form", None)
    if form is not None:
        return f"{cls.__name__}{_value(form)}"
    weak = getattr(value, "value", None)
    return f"weak {number(weak)}" if isinstance(weak, bool | int | float | complex) else _opaque(value)


def _opaque(value: Any) -> str:
    with _lock:
        try:
            index = _met.get(value)
            if index is None:
                index = _met[value] = next(_numbers)
        except TypeError:  # neither hashable nor weakly referable: kept alive, so that no other object gets its id
            index = next((i for v, i in _kept if v is value), -1)
            if index < 0:
                index = next(_numbers)
                _kept.append((value, index))
    name = getattr(value, "__qualname__", value.__class__.__qualname__)
    return f"<{getattr(value, '__module__', '')}.{name} #{index}>"
