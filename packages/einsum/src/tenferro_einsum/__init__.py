"""Differentiable einsum: sums of products over labeled axes, for any number of operands and labels."""

import tenferro_runtime.extension  # noqa: F401 - the code of programs, before anything imports a part of it

# isort: split
from typing import TYPE_CHECKING

from tenferro_einsum._einsum import contract_path, einsum, plan
from tenferro_einsum._memory import MemoryBudgetError, Slicing
from tenferro_einsum._notation import Contraction
from tenferro_einsum._plan import ContractionPlan
from tenferro_einsum._products import inner, kron, outer, tensordot
from tenferro_einsum._report import ContractionStep, PathReport
from tenferro_einsum._search import load_paths, save_paths
from tenferro_einsum._workers import WorkerError, run_on
from tenferro_tensor_core.absent import absent_from

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


def __dir__() -> list[str]:
    return __all__.copy()


_INSTEAD = {
    "array_contract": "einsum, with operands each followed by its labels",
    "array_contract_expression": "plan",
    "array_contract_path": "contract_path",
    "contract": "einsum",
    "contract_expression": "plan",
    "einsum_path": "contract_path",
    "ncon": "einsum, with operands each followed by its labels, and negative labels in the last list",
}
"""Replacements of names of opt_einsum, cotengra, quimb and NumPy."""

if not TYPE_CHECKING:
    __getattr__ = absent_from(__name__, _INSTEAD)
