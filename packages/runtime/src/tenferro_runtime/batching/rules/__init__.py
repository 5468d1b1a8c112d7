"""The batching rules of the core primitives, one file for each kind."""

from tenferro_runtime.batching._rules import batching_rule, by_expansion
from tenferro_runtime.batching.rules import contraction, control_flow, indexing, reading, structure
from tenferro_tensor import REGISTRY, Primitive

for _part in (structure, reading, contraction, indexing, control_flow):
    _part.register(REGISTRY)


def how_batched(primitive: Primitive) -> str:
    """How a primitive is applied to a batch.

    Args:
        primitive: the primitive.

    Returns:
        ``"element-wise"``, ``"rule"``, ``"expansion"`` or ``"lane by lane"``.
    """
    if primitive.elementwise:
        return "element-wise"
    if batching_rule(primitive) is not None:
        return "rule"
    return "expansion" if by_expansion(primitive) else "lane by lane"
