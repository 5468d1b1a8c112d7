"""`Dual`: a value with its tangent, for forward mode; nothing is recorded.

The tangent's level is below the dual's own but may exceed the value's, so that `linearize` traces only tangents.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tenferro_ad._apply import CallSite
from tenferro_ad._differentiated import Differentiated, split
from tenferro_ad._jvp import Jvp
from tenferro_ad._lengths import applied, nested
from tenferro_ad._rules import rule_of
from tenferro_ad._scopes import by_scope
from tenferro_tensor import REGISTRY, SCALARS, Op, Primitive, Spec
from tenferro_tensor.calls import DualBase, Entry, state
from tenferro_tensor.entries import device_of
from tenferro_tensor.promotion import materialised
from tenferro_tensor_core import AmbiguousPlacementError, GradientError

_new = object.__new__


class Dual(Differentiated, DualBase):
    """A value and its tangent in forward mode.

    Attributes:
        value: the inner value, of a lower level.
        spec: its spec.
        level: level of the differentiation that it belongs to.
        tangent: the tangent, of the same spec.
    """

    __slots__ = ()
    value: Any
    spec: Spec
    level: int
    tangent: Any

    def __init__(self) -> None:
        raise GradientError("a Dual cannot be constructed: jvp and the other forward transforms make them")

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        return push(self.level, op, args)

    def _apart(self) -> Dual:
        return dual(self.value._copied(), self.tangent, self.level)

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, tangent={self.tangent!r})"


def dual(value: Any, tangent: Any, level: int) -> Dual:
    """A value with a tangent."""
    z = _new(Dual)
    z.value, z.spec, z.level, z.tangent = value, value.spec, level, tangent
    return z


JVP_RULES: Final[dict[Primitive, Callable[..., Any]]] = {}
"""Forward-mode functions of primitives whose metadata is a program."""

JVP_RULES_BY_RULE: Final[dict[type, Callable[..., Any]]] = {}
"""The same, by class of the primitive's rule, which is their first argument."""


def jvp_rule_of(primitive: Primitive) -> Callable[..., Any] | None:
    """The primitive's own forward-mode function, or ``None``."""
    found = JVP_RULES.get(primitive)
    if found is None:
        rule = REGISTRY.find("rule", primitive)
        by_rule = JVP_RULES_BY_RULE.get(rule.__class__)
        found = None if by_rule is None else partial(by_rule, rule)
    return found


def push(level: int, op: Op, operands: tuple[Any, ...]) -> Any:
    """Run an op on dual operands: the outputs with their tangents.

    Args:
        level: the highest level among the operands, that of a dual.
        op: the op.
        operands: its operands.
    """
    mask, parts, lower, duals = split(operands, Dual, level)
    tangents = [a.tangent for a in duals]
    if not nested(lower):
        return _push(level, op, operands, mask, parts, lower, tangents)
    return applied(op, operands, lambda: _push(level, op, operands, mask, parts, lower, tangents))


def _push(
    level: int,
    op: Op,
    operands: tuple[Any, ...],
    mask: int,
    parts: tuple[Any, ...],
    lower: list[Any],
    tangents: list[Any],
) -> Any:
    """`push` for operands that are split."""
    if state.recording_scopes:
        found = by_scope(level, op, operands, lower)
        if found is not None:
            return found
    entry = op.entries.get((~mask, *parts))
    if entry is None:
        return _push_first(level, op, mask, lower, tangents)
    return _push_as(entry, level, lower, tangents)


def _push_first(level: int, op: Op, mask: int, lower: list[Any], tangents: list[Any]) -> Any:
    """`push` for an op without an entry for these operands."""
    if not op.primitive.elementwise:
        lower = list(materialised(tuple(lower)))
    need = tuple([i for i in range(len(lower)) if mask >> i & 1])
    rule = jvp_rule_of(op.primitive)
    if rule is not None:
        return rule(op, level, lower, need, tangents)
    parts = tuple([a.__class__ if a.__class__ in SCALARS else a.spec for a in lower])
    entry = op.entries.get((~mask, *parts))
    if entry is None:
        try:
            site = CallSite(op, rule_of(op), need, parts)
        except AmbiguousPlacementError:
            device_of(op, [a for a in lower if a.__class__ not in SCALARS])  # the same error, with the values' lines
            raise
        if not site.active:
            return op(*lower)
        key = (~mask, *parts)
        entry = op.remember(Entry(key, Jvp(site, key), site.outs if site.many else site.outs[0]))
    return _push_as(entry, level, lower, tangents)


def _push_as(entry: Entry, level: int, lower: list[Any], tangents: list[Any]) -> Any:
    """`push` by an entry."""
    found = entry.run(lower, tangents)
    count = len(found) // 2
    results = [z if t is None or not z.spec.inexact else dual(z, t, level) for z, t in zip(found, found[count:])]
    return tuple(results) if entry.many else results[0]


state.dual = Dual
