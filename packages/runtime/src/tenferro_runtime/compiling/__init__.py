"""`trace` and `compile`: from a call of a user's function to its program."""

from tenferro_runtime.compiling._compiled import Compiled, in_open_trace
from tenferro_runtime.compiling._environment import outer_values
from tenferro_runtime.compiling._fallbacks import FALLBACKS, Fallback
from tenferro_runtime.compiling._retraces import CacheInfo

__all__ = ["FALLBACKS", "CacheInfo", "Compiled", "Fallback", "in_open_trace", "outer_values"]


def __dir__() -> list[str]:
    return __all__.copy()
