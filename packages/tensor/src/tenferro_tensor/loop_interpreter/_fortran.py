"""BLAS and LAPACK subroutines from SciPy, as function addresses with Fortran's calling convention."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tenferro_tensor._libraries import library
from tenferro_tensor.backends import get_backend
from tenferro_tensor_core import UnsupportedError


@cache
def fortran_address(symbol: str) -> int:
    """The address of a BLAS or LAPACK subroutine with 32-bit integers, from SciPy.

    Args:
        symbol: name of the subroutine.

    Returns:
        The address.

    Raises:
        UnsupportedError: SciPy has none of this name.
    """
    for module in ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"):
        capsule = library(module).__pyx_capi__.get(symbol)
        if capsule is not None:
            name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
            name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            return int(pointer(capsule, name(capsule)))
    raise UnsupportedError(f"SciPy has no subroutine {symbol!r} of BLAS or LAPACK", symbol=symbol)


def call_fortran(symbol: str, arguments: Sequence[Any], informs: bool) -> int:
    """Call a subroutine; returns the value of an appended last integer argument.

    Args:
        symbol: its name.
        arguments: letters, numbers, and arrays; each is passed by address.
        informs: whether to append this integer.

    Returns:
        The value; 0 if no integer was appended.
    """
    return _call(fortran_address(symbol), arguments, np.dtype(np.int32), informs)


def call_routine(symbol: str, arguments: Sequence[Any]) -> int:
    """Call a routine of the CPU backend and return its status, -1 if the backend lacks it; see `Foreign`."""
    address = get_backend("cpu").routine_address(symbol)
    return -1 if address is None else _call(address, arguments, np.dtype(np.int64), True)


def _call(address: int, arguments: Sequence[Any], integer: np.dtype[Any], informs: bool) -> int:
    cells: list[Any] = []
    for a in arguments:
        if isinstance(a, str):
            cells.append(np.frombuffer(a.encode(), np.uint8))
        elif isinstance(a, np.integer):
            cells.append(np.array(a, integer))
        else:
            cells.append(np.asarray(a))
    info = np.zeros((), integer)
    if informs:
        cells.append(info)
    subroutine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(cells))(address)
    subroutine(*[cell.ctypes.data for cell in cells])
    return int(info)
