"""Recording: one op on differentiated operands runs on the values inside and leaves one node.

An element-wise op on operands of several shapes and dtypes is one node too: the kernel broadcasts and promotes by
itself, and the rule sees operands that are brought to one spec only when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_ad import _modes
from tenferro_ad._blame import blamed
from tenferro_ad._eager import EagerTensor, wrap, wrap_many
from tenferro_ad._node import Node, SourcedNode, make_node, next_seq
from tenferro_ad._plan import pullback_plan
from tenferro_tensor import SCALARS, Op, Primitive, Tensor
from tenferro_tensor._plan import device_of
from tenferro_tensor._tensor import materialised
from tenferro_tensor_core import AmbiguousPlacementError

Hook = Callable[[Op, int, list[Any], tuple[int, ...], tuple[Node, ...]], Any]

HOOKS: Final[dict[Primitive, Hook]] = {}
"""Primitives that are recorded in their own way: those whose metadata is a program, and transfers."""


def record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    """Run an op on the values inside its operands, and record it.

    Args:
        op: the op.
        level: the level of differentiation.
        lower: its operands, those of this level replaced by the values inside.
        need: positions of the operands that are of this level.
        parents: their nodes.
    """
    if not op.primitive.elementwise:
        lower = list(materialised(op, tuple(lower)))
    hook = HOOKS.get(op.primitive)
    if hook is not None:
        return hook(op, level, lower, need, parents)
    try:
        plan = pullback_plan(op, need, tuple([a.__class__ if a.__class__ in SCALARS else a.spec for a in lower]))
    except AmbiguousPlacementError:
        device_of(op, [a for a in lower if a.__class__ not in SCALARS])  # the same error, with the values' lines
        raise
    out = op(*lower)
    if not plan.active:
        return out
    _, pull, keep = plan.how
    first = out[0] if plan.many else out
    if first.__class__ is not Tensor:
        pull = blamed(pull, first)
    node = make_node(pull, parents, keep(*lower, *out) if plan.many else keep(*lower, out))
    if _modes.slow and _modes.sourced():
        node = _with_source(node)
    return wrap_many(out, level, node) if plan.many else wrap(out, level, node)


def _with_source(node: Node) -> SourcedNode:
    told = object.__new__(SourcedNode)
    told.seq, told.pull, told.parents, told.saved = next_seq(), node.pull, node.parents, node.saved
    told.where = _modes.user_line()
    return told


EagerTensor.record = staticmethod(record)
