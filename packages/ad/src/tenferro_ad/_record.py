"""Recording: an op on differentiated operands runs on their inner values and creates one node.

An elementwise op on operands of several shapes and dtypes is one node too: the kernel broadcasts and promotes, and the
rule brings the operands to one spec when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_ad import _modes
from tenferro_ad._apply import CallSite
from tenferro_ad._attribution import blamed
from tenferro_ad._differentiated import split
from tenferro_ad._eager import EagerTensor, wrap, wrap_many
from tenferro_ad._lengths import applied, nested
from tenferro_ad._node import SourcedNode, owned_all
from tenferro_ad._rules import rule_of
from tenferro_ad._scopes import by_scope
from tenferro_ad._slices import SliceVjp, is_small_slice
from tenferro_ad._vjp import Vjp
from tenferro_runtime.extension import General
from tenferro_tensor import REGISTRY, SCALARS, Op, Primitive, Tensor
from tenferro_tensor.calls import Entry, Node, state
from tenferro_tensor.entries import device_of
from tenferro_tensor.promotion import materialised
from tenferro_tensor_core import AmbiguousPlacementError

Recorder = Callable[[Op, int, list[Any], tuple[int, ...], tuple[Node, ...]], Any]

RECORDERS: Final[dict[Primitive, Recorder]] = {}
"""Recorders of primitives whose metadata is a program, and of transfers."""

RECORDERS_BY_RULE: Final[dict[type, Callable[..., Any]]] = {}
"""Recorders by class of the primitive's rule, which is their first argument."""


def record(level: int, op: Op, operands: tuple[Any, ...]) -> Any:
    """Run an op on the inner values of its operands, and record a node.

    Args:
        level: the highest level among the operands, that of an eager tensor.
        op: the op.
        operands: its operands.
    """
    mask, parts, lower, recorded = split(operands, EagerTensor, level)
    if not nested(lower):
        return _record(level, op, operands, mask, parts, lower, recorded)
    return applied(op, operands, lambda: _record(level, op, operands, mask, parts, lower, recorded))


def _record(
    level: int,
    op: Op,
    operands: tuple[Any, ...],
    mask: int,
    parts: tuple[Any, ...],
    lower: list[Any],
    recorded: list[Any],
) -> Any:
    """`record` for operands that are split."""
    parents: list[Node] = [a.node for a in recorded]
    if state.recording_scopes:
        found = by_scope(level, op, operands, lower)
        if found is not None:
            return found
    entry = op.entries.get((mask, *parts))
    if entry is None:
        return _record_first(level, op, mask, lower, parents)
    return _record_as(entry, level, op, lower, tuple(parents))


def _record_first(level: int, op: Op, mask: int, lower: list[Any], parents: list[Node]) -> Any:
    """`record` for an op without an entry for these operands."""
    if not op.primitive.elementwise:
        lower = list(materialised(tuple(lower)))
    need = tuple([i for i in range(len(lower)) if mask >> i & 1])
    recorder = RECORDERS.get(op.primitive)
    if recorder is None:
        rule = REGISTRY.find("rule", op.primitive)
        if rule.__class__ in RECORDERS_BY_RULE:
            return RECORDERS_BY_RULE[rule.__class__](rule, op, level, lower, need, tuple(parents))
        if rule.__class__ is General and rule.recorded is not None:
            op = rule.recorded(op)
    else:
        return recorder(op, level, lower, need, tuple(parents))
    parts = tuple([a.__class__ if a.__class__ in SCALARS else a.spec for a in lower])
    entry = op.entries.get((mask, *parts))
    if entry is None:
        try:
            entry = op.remember(make_entry(op, mask, parts))
        except AmbiguousPlacementError:
            device_of(op, [a for a in lower if a.__class__ not in SCALARS])  # the same error, with the values' lines
            raise
    return _record_as(entry, level, op, lower, tuple(parents))


def make_entry(op: Op, mask: int, parts: tuple[Any, ...]) -> Entry:
    """The entry of an op with its derivative.

    It has no kernel until the op has run on concrete values: inner values may be of other levels, or traced.
    """
    key = (mask, *parts)
    site = CallSite(op, rule_of(op), tuple([i for i in range(len(parts)) if mask >> i & 1]), parts)
    out = site.outs if site.many else site.outs[0]
    if not site.active:
        return Entry(key, None, out)
    return Entry(key, None, out, site.save, (SliceVjp if is_small_slice(site) else Vjp)(site, key))


def _record_as(entry: Entry, level: int, op: Op, lower: list[Any], parents: tuple[Node, ...]) -> Any:
    """`record` by an entry."""
    out = op(*lower)
    outs = out if entry.many else (out,)
    if outs[0].__class__ is Tensor and entry.run is None and not state.open_scopes:
        plain = op.entries.get((0, *entry.key[1:]))
        if plain is not None:
            op.remember(Entry(entry.key, plain.run, plain.out, entry.save, entry.vjp))
    vjp = entry.vjp
    if vjp is None:
        return out
    if outs[0].__class__ is not Tensor:
        vjp = blamed(vjp, outs[0])
    values = (*lower, *outs)
    saved = tuple([values[i] for i in entry.save])
    if state.recording_scopes and _modes.sourced():
        node: Node = SourcedNode(vjp, parents, owned_all(saved))
        node.where = _modes.user_line()  # type: ignore[attr-defined]
    else:
        node = Node(vjp, parents, owned_all(saved))
    return wrap_many(out, level, node) if entry.many else wrap(out, level, node)


state.recorded, state.record = EagerTensor, record
