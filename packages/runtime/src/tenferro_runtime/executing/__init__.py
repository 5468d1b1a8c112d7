"""Programs on several devices: a plan of steps on queues with the waits between them, its verifier, its executor."""

from tenferro_runtime.executing import _several as _several
from tenferro_runtime.executing._plan import ExecutionPlan
from tenferro_runtime.executing._verify import PlanError, verify

__all__ = ["ExecutionPlan", "PlanError", "verify"]
