"""Programs on several devices: plans of steps on queues with waits between them, their verifier and executor."""

from tenferro_runtime.placement._cost import CostModel
from tenferro_runtime.placement._executor import Execution, executions
from tenferro_runtime.placement._machine import sync_strategy
from tenferro_runtime.placement._placement import Placement
from tenferro_runtime.placement._plan import ExecutionPlan
from tenferro_runtime.placement._several import plan_for, planned
from tenferro_runtime.placement._sync import Route, SyncStrategy, Wait
from tenferro_runtime.placement._timeline import CancelledError, TimelineSignal
from tenferro_runtime.placement._verify import PlanError, verify

__all__ = [
    "CancelledError",
    "CostModel",
    "Execution",
    "ExecutionPlan",
    "Placement",
    "PlanError",
    "Route",
    "SyncStrategy",
    "TimelineSignal",
    "Wait",
    "executions",
    "plan_for",
    "planned",
    "sync_strategy",
    "verify",
]


def __dir__() -> list[str]:
    return __all__.copy()
