"""Addresses of what native entries call and compare with: the C interfaces of Python and NumPy.

Every symbol has a name that machine code on disk refers to; addresses are given at load time.
"""

import ctypes
from functools import cache
from typing import Any, Final

import numpy as np

_PYTHON: Final = {
    "incref": "Py_IncRef",
    "decref": "Py_DecRef",
    "vectorcall": "PyObject_Vectorcall",
    "save_thread": "PyEval_SaveThread",
    "restore_thread": "PyEval_RestoreThread",
    "long_as_long": "PyLong_AsLongLongAndOverflow",
    "tuple": "PyTuple_New",
}
"""Functions of the interpreter, all of its stable interface but the vector call."""

_NUMPY: Final = {"new_from_descr": 94, "return": 76}
"""Functions of NumPy by their place in its table, which never changes."""

_OBJECTS: Final = {"ndarray": np.ndarray, "float": float, "int": int, "complex": complex}


@cache
def symbols() -> dict[str, int] | None:
    """Addresses by symbol name, or None where the interfaces are not there."""
    try:
        calls = {name: _address(getattr(ctypes.pythonapi, full)) for name, full in _PYTHON.items()}
        table = numpy_table()
    except (AttributeError, ValueError):
        return None
    calls.update((name, ctypes.c_void_p.from_address(table + 8 * i).value or 0) for name, i in _NUMPY.items())
    if not _allocates(calls["new_from_descr"]):
        return None
    calls.update((name, id(value)) for name, value in _OBJECTS.items())
    return {f"tenferro_{name}": address for name, address in calls.items()}


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def numpy_table() -> int:
    """Address of NumPy's table of C functions."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    address: int = pointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return address


def _allocates(address: int) -> bool:
    """Whether the function at the table's place makes an array."""
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
    )(address)  # fmt: skip
    descr = np.dtype("float32")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(descr))  # the function takes a reference over
    shape = (ctypes.c_int64 * 2)(2, 3)  # named: its address says nothing to the collector
    made = make(np.ndarray, id(descr), 2, ctypes.addressof(shape), None, None, 0, None)
    return isinstance(made, np.ndarray) and made.shape == (2, 3) and made.dtype is descr and made.flags.c_contiguous
