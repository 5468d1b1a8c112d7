"""bfloat16 through DLPack, which defines the dtype although NumPy's adapter does not support it.

NumPy exports and imports the same memory as 16-bit unsigned integers, and this module changes the type code in the
capsule. The code is one byte, at an offset that the DLPack ABI fixes.
"""

import ctypes
from typing import Any, Final

import numpy as np

from ._dtypes import load_bfloat16

HostArray = np.ndarray[Any, np.dtype[Any]]


_UINT: Final = 1
_BFLOAT: Final = 4

_CODE_OFFSET: Final = {b"dltensor": 20, b"dltensor_versioned": 52}
"""Byte offset of the type code in the struct that a capsule of each name points to.

A tensor begins with a pointer to its data, its device (8 bytes) and its number of axes (4 bytes). In a versioned
capsule, version, context, deleter and flags (8 bytes each) come first."""


def _type_field(capsule: Any) -> Any:
    """The dtype field of an unconsumed capsule, as 4 writable bytes: code, bits, and lanes in two bytes."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    offset = _CODE_OFFSET.get(name)
    if offset is None:
        raise BufferError(f"the name of a DLPack capsule is one of {sorted(_CODE_OFFSET)}, got {name!r}")
    return (ctypes.c_uint8 * 4).from_address(pointer_of(capsule, name) + offset)


def exported_bfloat16(x: HostArray, **options: Any) -> object:
    """Return the DLPack capsule of a bfloat16 array.

    Args:
        x: a bfloat16 array of any shape.
        options: the keyword arguments of `__dlpack__`.

    Returns:
        An unconsumed capsule.

    >>> capsule = exported_bfloat16(np.asarray([1.5], load_bfloat16()), max_version=(1, 0))
    >>> list(_type_field(capsule))
    [4, 16, 1, 0]
    """
    capsule = x.view(np.uint16).__dlpack__(**options)
    _type_field(capsule)[0] = _BFLOAT
    return capsule


class BitsProducer:
    """A DLPack producer that presents the bfloat16 data of another one as 16-bit unsigned integers.

    Args:
        producer: the other producer.

    Attributes:
        found: whether the last export was bfloat16.
    """

    def __init__(self, producer: Any) -> None:
        self.producer, self.found = producer, False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.producer.__dlpack__(**options)
        field = _type_field(capsule)
        self.found = tuple(field) == (_BFLOAT, 16, 1, 0)
        if self.found:
            field[0] = _UINT
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.producer.__dlpack_device__()

    def read(self, array: HostArray) -> HostArray:
        """Return an imported array in its original dtype."""
        return array.view(load_bfloat16()) if self.found else array
