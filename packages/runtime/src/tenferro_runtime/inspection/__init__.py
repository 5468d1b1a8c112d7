"""Looking at programs: what they cost, where they spend their time, what they look like, where a NaN comes from."""

from tenferro_runtime.costs._memory import MemoryPlan, plan_memory
from tenferro_runtime.inspection._calls import explain_dispatch, transfers
from tenferro_runtime.inspection._compare import compare
from tenferro_runtime.inspection._configuration import show_config
from tenferro_runtime.inspection._draw import draw, function_card, program_card
from tenferro_runtime.inspection._explain import explain
from tenferro_runtime.inspection._find_nan import find_nan
from tenferro_runtime.inspection._profile import profile
from tenferro_runtime.inspection._show_ir import show_ir

__all__ = [
    "MemoryPlan",
    "compare",
    "draw",
    "explain",
    "explain_dispatch",
    "find_nan",
    "function_card",
    "plan_memory",
    "profile",
    "program_card",
    "show_config",
    "show_ir",
    "transfers",
]


def __dir__() -> list[str]:
    return __all__.copy()
