"""Differentiable einsum: sums of products over labelled axes, for any number of operands and labels."""

from tenferro_einsum._einsum import contract_path, einsum, plan
from tenferro_einsum._notation import Contraction
from tenferro_einsum._plan import ContractionPlan
from tenferro_einsum._products import inner, kron, outer, tensordot
from tenferro_einsum._report import PathReport, StepCost
from tenferro_einsum._search import load_paths, save_paths

__all__ = [
    "Contraction",
    "ContractionPlan",
    "PathReport",
    "StepCost",
    "contract_path",
    "einsum",
    "inner",
    "kron",
    "load_paths",
    "outer",
    "plan",
    "save_paths",
    "tensordot",
]
