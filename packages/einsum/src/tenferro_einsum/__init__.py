"""Differentiable einsum: sums of products over labelled axes, for any number of operands and labels."""

from tenferro_einsum._einsum import contract_path, einsum, plan, tensordot
from tenferro_einsum._notation import Contraction
from tenferro_einsum._plan import ContractionPlan

__all__ = ["Contraction", "ContractionPlan", "contract_path", "einsum", "plan", "tensordot"]
