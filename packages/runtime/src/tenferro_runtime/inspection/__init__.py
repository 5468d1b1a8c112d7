"""Looking at programs: what they cost, where they spend their time, what they look like, where a NaN comes from."""

from tenferro_runtime.inspection._explain import Explanation, StepCost, explain
from tenferro_runtime.inspection._memory import MemoryPlan, plan_memory

__all__ = ["Explanation", "MemoryPlan", "StepCost", "explain", "plan_memory"]
