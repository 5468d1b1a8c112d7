"""Operations and bytes of steps, and the memory that results share; for reports and for the placement of steps."""

from tenferro_runtime.costs import _bodies as _bodies  # registers the costs of calls, branches and loops
from tenferro_runtime.costs._memory import MemoryPlan, plan_memory

__all__ = ["MemoryPlan", "plan_memory"]


def __dir__() -> list[str]:
    return __all__.copy()
