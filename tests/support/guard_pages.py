"""Arrays adjacent to pages that can be neither read nor written (Linux), and programs that use them."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

PAGE = 4096
_PRIVATE_ANONYMOUS, _READ_WRITE = 34, 3


def between_guards(shape: tuple[int, ...], dtype: Any, at_end: bool) -> Any:
    """An array that begins where a page begins, or ends where one ends, between two that are out of bounds."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = -(-size // PAGE) * PAGE
    base = libc.mmap(None, pages + 2 * PAGE, _READ_WRITE, _PRIVATE_ANONYMOUS, -1, 0)
    assert libc.mprotect(base, PAGE, 0) == 0 and libc.mprotect(base + PAGE + pages, PAGE, 0) == 0
    start = base + PAGE + (pages - size if at_end else 0)
    return np.frombuffer((ctypes.c_uint8 * size).from_address(start), dtype).reshape(shape)


def guarded(x: Any, at_end: bool) -> Any:
    """A copy of an array `between_guards`."""
    made = between_guards(x.shape, x.dtype, at_end)
    made[...] = x
    return made


def require_inside(code: str) -> None:
    """Run a program of its own, which an access out of bounds would end."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", f"from guard_pages import between_guards, guarded\n{code}\nprint('inside')"],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.strip() == "inside", done.stderr
