"""Finds the batching rule of a primitive."""

from __future__ import annotations

from tenferro_runtime.batching._records import BatchingRule
from tenferro_runtime.tracing.expanding._apply import has_expansion
from tenferro_tensor import REGISTRY, Primitive


def batching_rule(primitive: Primitive) -> BatchingRule | None:
    """The batching rule that is registered for a primitive, if there is one."""
    return REGISTRY.find("batching", primitive)


def by_expansion(primitive: Primitive) -> bool:
    """Whether a primitive without a rule is batched by its expansion, which excludes those with derivative rules."""
    return has_expansion(primitive) and REGISTRY.find("rule", primitive) is None
