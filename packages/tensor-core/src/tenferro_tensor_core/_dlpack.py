"""bfloat16 through DLPack, which has the type while NumPy's adapter has not.

NumPy hands over and takes the same memory as integers of 16 bits; the code of the type in the capsule makes the
difference. It is one byte, at a place that the two layouts of DLPack fix.
"""

import ctypes
from typing import Any, Final

import numpy as np

from ._dtypes import load_bfloat16

HostArray = np.ndarray[Any, np.dtype[Any]]

_UINT: Final = 1
_BFLOAT: Final = 4

_CODE_AT: Final = {b"dltensor": 20, b"dltensor_versioned": 52}
"""Offset of the code of the element type in what a capsule of each name points to.

A tensor begins with a pointer to its data, its device (8 bytes) and the number of its axes (4 bytes). In a versioned
capsule, version, context, deleter and flags (8 bytes each) come first."""

BFLOAT16: Final = (_BFLOAT, 16, 1)
"""Code, bits and lanes of the type."""


def _element_type(capsule: Any) -> Any:
    """The element type in a capsule that nobody has consumed: code, bits, and lanes as two bytes."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    at = _CODE_AT.get(name)
    if at is None:
        raise BufferError(f"a DLPack capsule is called one of {sorted(_CODE_AT)}, got {name!r}")
    return (ctypes.c_uint8 * 4).from_address(pointer_of(capsule, name) + at)


def exported_bfloat16(x: HostArray, **options: Any) -> Any:
    """Return the DLPack capsule of an array of bfloat16.

    >>> from_bits = exported_bfloat16(np.asarray([1.5], load_bfloat16()), max_version=(1, 0))
    >>> list(_element_type(from_bits))
    [4, 16, 1, 0]
    """
    capsule = x.view(np.uint16).__dlpack__(**options)
    _element_type(capsule)[0] = _BFLOAT
    return capsule


class Bits:
    """A producer of bfloat16 as a producer of the integers that the numbers are made of.

    Attributes:
        found: whether what it exported last was bfloat16.
    """

    def __init__(self, producer: Any) -> None:
        self.producer, self.found = producer, False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.producer.__dlpack__(**options)
        of = _element_type(capsule)
        self.found = tuple(of) == (_BFLOAT, 16, 1, 0)
        if self.found:
            of[0] = _UINT
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.producer.__dlpack_device__()

    def read(self, array: HostArray) -> HostArray:
        """Return what was exported, in its own type."""
        return array.view(load_bfloat16()) if self.found else array
