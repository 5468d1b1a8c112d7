"""Calls from programs back into Python: `debug_callback`, `debug_print` and `pure_callback`."""

from tenferro_runtime.callbacks._debug import debug_callback, debug_print
from tenferro_runtime.callbacks._pure import pure_callback

__all__ = ["debug_callback", "debug_print", "pure_callback"]


def __dir__() -> list[str]:
    return __all__.copy()
