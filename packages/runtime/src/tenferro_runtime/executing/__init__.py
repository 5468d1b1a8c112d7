"""Programs on several devices: a plan of steps on queues with the waits between them, its verifier, its executor."""

from tenferro_runtime.executing._cost import CostModel
from tenferro_runtime.executing._placement import Placement
from tenferro_runtime.executing._plan import ExecutionPlan
from tenferro_runtime.executing._several import plan_for, planned
from tenferro_runtime.executing._timeline import CancelledError
from tenferro_runtime.executing._verify import PlanError, verify

__all__ = ["CancelledError", "CostModel", "ExecutionPlan", "Placement", "PlanError", "plan_for", "planned", "verify"]
