"""Differentiable einsum: sums of products over labeled axes, for any number of operands and labels."""

import tenferro_runtime.extension  # noqa: F401 - the code of programs, before anything imports a part of it

# isort: split
from tenferro_einsum._einsum import contract_path, einsum, plan
from tenferro_einsum._memory import MemoryBudgetError, Slicing
from tenferro_einsum._notation import Contraction
from tenferro_einsum._plan import ContractionPlan
from tenferro_einsum._products import inner, kron, outer, tensordot
from tenferro_einsum._report import ContractionStep, PathReport
from tenferro_einsum._search import load_paths, save_paths
from tenferro_einsum._workers import WorkerError, run_on

__all__ = [
    "Contraction",
    "ContractionPlan",
    "MemoryBudgetError",
    "PathReport",
    "Slicing",
    "ContractionStep",
    "WorkerError",
    "contract_path",
    "einsum",
    "inner",
    "kron",
    "load_paths",
    "outer",
    "plan",
    "run_on",
    "save_paths",
    "tensordot",
]
__dir__ = __all__.copy
