"""`trace` and `compile`: from a call of a user's function to its program."""

from tenferro_runtime.compiling._compiled import Compiled, in_open_trace
from tenferro_runtime.compiling._environment import outer_values
from tenferro_runtime.compiling._recourses import RECOURSES, Recourse
from tenferro_runtime.compiling._retraces import CacheInfo

__all__ = ["RECOURSES", "CacheInfo", "Compiled", "Recourse", "in_open_trace", "outer_values"]


def __dir__() -> list[str]:
    return __all__.copy()
