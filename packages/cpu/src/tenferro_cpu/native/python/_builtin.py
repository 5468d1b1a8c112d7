"""Machine code as a built-in function of Python."""

import ctypes
from typing import Any, Final

FASTCALL: Final = 0x80
"""``PyObject *f(self, args, nargs)``."""
NOARGS: Final = 0x4
"""``PyObject *f(self, NULL)``."""


class MethodDef(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_kept: list[MethodDef] = []  # a built-in function refers to its definition for ever


def definition(name: str, address: int, flags: int) -> MethodDef:
    """A definition from which any number of functions are made; it lives as long as the process."""
    made = MethodDef(name.encode(), address, flags, b"Machine code.")
    _kept.append(made)
    return made


_new: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def builtin(define: MethodDef, receiver: Any) -> Any:
    """A built-in function that gets `receiver` as its ``self``."""
    return _new(ctypes.addressof(define), receiver, None)
