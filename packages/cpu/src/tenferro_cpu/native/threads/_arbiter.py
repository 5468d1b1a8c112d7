"""The thread policy in machine code: twenty times as fast as `Arbiter`."""

import ctypes
from typing import Any, Final

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.threads import _blas
from tenferro_tensor_core.forks import new_lock

_PLACES: Final[dict[str, bool]] = {}
"""Libraries by path, and whether the policy's process-wide table has room for them."""
_LOCK: Final = new_lock()


class NativeArbiter:
    """`Arbiter` with `enter` and `leave` in C, which `arbiter.h` also exports to C code.

    Attributes:
        symbols: addresses of the table and of both functions, for entries of other kernels.
    """

    def __init__(self) -> None:
        self.symbols = {name: a for name, a in compiled.ADDRESSES.items() if name.startswith("tenferro_blas_")}
        self.enter, self.leave = compiled.blas_enter, compiled.blas_leave
        self.scopes, self.after_fork = compiled.blas_scopes, compiled.blas_after_fork
        self.refresh()

    def refresh(self) -> None:
        """Search for libraries again; known ones keep their index."""
        with _LOCK:
            for library in _blas.libraries():
                if library.path not in _PLACES:
                    _PLACES[library.path] = compiled.blas_add(
                        _address(library.get_threads), _address(library.set_threads)
                    )


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def make() -> NativeArbiter | None:
    """The arbiter in machine code; None in a pure wheel."""
    return None if compiled is None else NativeArbiter()
