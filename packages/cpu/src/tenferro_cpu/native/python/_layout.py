"""Where CPython and NumPy keep the fields that native entries read, and the test that they are there.

The fields are those of the public C headers, but their offsets belong to one build of the interpreter. `Layout.found`
compares every one of them with what Python itself says of the same objects; entries exist only where all agree.
"""

import ctypes
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

import numpy as np

BASIC: Final = 16
"""Bytes before the fields of an object: its reference count and its class."""
TYPE: Final = 8
CLASS_FLAGS: Final = 168
"""Flags of a class, of which `TUPLE_SUBCLASS` says that its instances are laid out as tuples."""
TUPLE_SUBCLASS: Final = 1 << 26
TUPLE_SIZE: Final = 16
"""Where a tuple keeps the number of its items."""
BYTES: Final = 32
"""Where the characters of a ``bytes`` object start."""
DATA, NDIM, DIMS, STRIDES, BASE, DESCR, FLAGS = 16, 24, 32, 40, 48, 56, 64
"""Fields of an ``ndarray``."""
NUMBER: Final = 16
"""Where the value of a ``float``, a ``complex`` and a NumPy scalar starts."""

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

SCALARS: Final = ("float64", "float32", "complex128", "complex64", "int64", "int32", "int16", "int8",
                  "uint64", "uint32", "uint16", "uint8")  # fmt: skip
"""Dtypes whose NumPy scalars are read in place."""


def word(address: int) -> int:
    """Eight bytes of memory as an unsigned number."""
    return ctypes.c_uint64.from_address(address).value


def text_of(address: int, size: int) -> bytes:
    """Bytes of memory."""
    return ctypes.string_at(address, size)


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets that differ between versions of the interpreter.

    Attributes:
        tuple_items: where the items of a tuple start.
    """

    tuple_items: int

    @classmethod
    @cache
    def found(cls) -> Self | None:
        """The layout of this process, or None where it is not the one that entries are written for."""
        if sys.implementation.name != "cpython" or hasattr(sys, "gettotalrefcount"):
            return None
        if sysconfig.get_config_var("Py_GIL_DISABLED") or object.__basicsize__ != BASIC:
            return None
        items = tuple.__basicsize__
        return cls(items) if _python_agrees(items) and _arrays_agree() and _scalars_agree() else None


def _python_agrees(items: int) -> bool:
    triple, letters = (1.5, "x", object()), b"some letters"
    return (
        bytes.__basicsize__ == BYTES + 1
        and text_of(id(letters) + BYTES, len(letters)) == letters
        and [word(id(triple) + items + 8 * i) for i in range(3)] == [id(v) for v in triple]
        and word(id(triple) + TUPLE_SIZE) == 3
        and all(word(id(cls) + CLASS_FLAGS) == cls.__flags__ for cls in (tuple, list, np.ndarray))
        and [bool(c.__flags__ & TUPLE_SUBCLASS) for c in (tuple, type(sys.version_info), list)] == [True, True, False]
        and all(word(id(v) + TYPE) == id(type(v)) for v in (*triple, letters, triple, 1, 2j))
        and text_of(id(triple[0]) + NUMBER, 8) == np.float64(1.5).tobytes()
        and text_of(id(2.5 - 3j) + NUMBER, 16) == np.complex128(2.5 - 3j).tobytes()
    )


def _arrays_agree() -> bool:
    if np.ndarray.__basicsize__ < FLAGS + 8:
        return False
    base = np.arange(48.0).reshape(2, 4, 6)
    frozen = base.astype("int16")
    frozen.flags.writeable = False
    odd = np.frombuffer(bytes(33), "float64", 4, offset=1)
    return all(map(_array_agrees, (base, base[1], base[:, ::2].T, frozen, odd, np.zeros((0, 3), "complex64"))))


def _array_agrees(a: np.ndarray[Any, Any]) -> bool:
    at = id(a)
    if word(at + TYPE) != id(np.ndarray) or word(at + DESCR) != id(a.dtype) or word(at + DATA) != a.ctypes.data:
        return False
    if word(at + BASE) != (0 if a.base is None else id(a.base)):
        return False
    if ctypes.c_int32.from_address(at + NDIM).value != a.ndim:
        return False
    flags = ctypes.c_int32.from_address(at + FLAGS).value
    seen = tuple(bool(flags & bit) for bit in (C_CONTIGUOUS, ALIGNED, WRITEABLE))
    if seen != (a.flags.c_contiguous, a.flags.aligned, a.flags.writeable):
        return False
    dims, strides = ((ctypes.c_int64 * a.ndim).from_address(word(at + field)) for field in (DIMS, STRIDES))
    return tuple(dims) == a.shape and tuple(strides) == a.strides


def _scalars_agree() -> bool:
    for name in SCALARS:
        x = np.dtype(name).type(7)
        if word(id(x) + TYPE) != id(type(x)) or text_of(id(x) + NUMBER, x.itemsize) != x.tobytes():
            return False
    return True
