"""Recording: one op on differentiated operands runs on the values inside and leaves one node.

An element-wise op on operands of several shapes and dtypes is one node too: the kernel broadcasts and promotes by
itself, and the rule sees operands that are brought to one spec only when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_ad import _modes
from tenferro_ad._apply import CallSite
from tenferro_ad._blame import blamed
from tenferro_ad._eager import EagerTensor, wrap, wrap_many
from tenferro_ad._entries import ENTRIES
from tenferro_ad._node import SourcedNode
from tenferro_ad._rules import rule_of
from tenferro_ad._vjp import Vjp
from tenferro_runtime.tracing import stage_above
from tenferro_tensor import SCALARS, Op, Primitive, Tensor
from tenferro_tensor.calls import Entry, Node, state
from tenferro_tensor.entries import device_of
from tenferro_tensor.ownership import owned
from tenferro_tensor.promotion import materialised
from tenferro_tensor_core import AmbiguousPlacementError

Recorder = Callable[[Op, int, list[Any], tuple[int, ...], tuple[Node, ...]], Any]

RECORDERS: Final[dict[Primitive, Recorder]] = {}
"""Primitives that are recorded in their own way: those whose metadata is a program, and transfers."""


def record(level: int, op: Op, operands: tuple[Any, ...]) -> Any:
    """Run an op on the values inside its operands, and leave a node.

    Args:
        level: the highest level among the operands, that of a recorded one.
        op: the op.
        operands: its operands.
    """
    mask, bit = 0, 1
    lower: list[Any] = []
    parts: list[Any] = []
    parents: list[Node] = []
    for a in operands:
        if a.__class__ is EagerTensor and a.level == level:
            mask |= bit
            parents.append(a.node)
            parts.append(a.spec)
            lower.append(a.value)
        else:
            parts.append(a.__class__ if a.__class__ in SCALARS else a.spec)
            lower.append(a)
        bit += bit
    if state.recording_scopes:
        if _modes.silent(level):
            return op(*lower)
        inner = stage_above(level)
        if inner is not None:
            return inner.bind(op, operands)
    entry = ENTRIES.table.get((op, mask, *parts))
    if entry is None:
        return _record_first(level, op, mask, lower, parents)
    return record_with(entry, level, op, lower, tuple(parents))


def record_with(entry: Entry, level: int, op: Op, lower: list[Any], parents: tuple[Node, ...]) -> Any:
    """Run an op, and record it as its entry says."""
    out = op(*lower)
    vjp = entry.vjp
    if vjp is None:
        return out
    outs = out if out.__class__ is tuple else (out,)
    if outs[0].__class__ is not Tensor:
        vjp = blamed(vjp, outs[0])
    count = len(lower)
    saved = tuple([lower[i] if i < count else outs[i - count] for i in entry.save])
    for x in saved:
        if x.__class__ is Tensor:
            owned(x)
    if state.recording_scopes and _modes.sourced():
        node: Node = SourcedNode(vjp, parents, saved)
        node.where = _modes.user_line()  # type: ignore[attr-defined]
    else:
        node = Node(vjp, parents, saved)
    if out.__class__ is tuple:
        return wrap_many(out, level, node)
    return wrap(out, level, node)


def _record_first(level: int, op: Op, mask: int, lower: list[Any], parents: list[Node]) -> Any:
    """Record an op that has no entry for these operands yet, or must have none."""
    if not op.primitive.elementwise:
        lower = list(materialised(tuple(lower)))
    need = tuple([i for i in range(len(lower)) if mask >> i & 1])
    hook = RECORDERS.get(op.primitive)
    if hook is not None:
        return hook(op, level, lower, need, tuple(parents))
    parts = tuple([a.__class__ if a.__class__ in SCALARS else a.spec for a in lower])
    key = (op, mask, *parts)
    entry = ENTRIES.table.get(key)
    if entry is None:
        try:
            entry = ENTRIES.put(key, make_entry(op, need, key, parts))
        except AmbiguousPlacementError:
            device_of(op, [a for a in lower if a.__class__ not in SCALARS])  # the same error, with the values' lines
            raise
    return record_with(entry, level, op, lower, tuple(parents))


def make_entry(op: Op, need: tuple[int, ...], key: Any, parts: tuple[Any, ...]) -> Entry:
    """The entry of an op with its derivative."""
    site = CallSite(op, rule_of(op), need, parts)
    out = site.outs if site.many else site.outs[0]
    return Entry(key, None, out, site.save, Vjp(site, key)) if site.active else Entry(key, None, out, (), None)


state.recorded, state.record = EagerTensor, record
