"""Pullback plans: how to pull a cotangent through one op, for given differentiated operands and operand specs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_ad._apply import Site, pullback
from tenferro_ad._rules import rule_of
from tenferro_tensor import Op

BOUND: Final = 4096

Hook = Callable[..., Any]
"""``hook(op, level, lower, need, parents)``: records an op that brings its own way of being recorded."""


class PullbackPlan:
    """Pulls cotangents through one op.

    Attributes:
        site: the op and its circumstances.
        active: whether a derivative passes.
        many: whether the op has several outputs.
        save: positions among (operands..., outputs...) of what a node saves.
        pull: what a node calls with a cotangent and the saved values.
        hook: records the op instead, or ``None``.
    """

    __slots__ = ("active", "hook", "many", "pull", "save", "site")

    def __init__(self, site: Site, hook: Hook | None = None) -> None:
        self.site, self.hook = site, hook
        self.active, self.many, self.save = site.active, site.many, site.save
        self.pull = self.pull_by_rule

    @property
    def op(self) -> Op:
        """The op, which errors name."""
        return self.site.op

    def pull_by_rule(self, g: Any, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """Apply the rule as it is written; works on values of every kind."""
        site = self.site
        count = len(site.given)
        slots: list[Any] = [None] * (count + len(site.outs))
        for i, v in zip(site.save, saved):
            slots[i] = v
        return pullback(site, slots[:count], slots[count:], g if self.many else (g,))


_plans: dict[Any, PullbackPlan] = {}


def pullback_plan(op: Op, need: tuple[int, ...], given: tuple[Any, ...]) -> PullbackPlan:
    """The plan for an op, the positions of its differentiated operands, and the specs of all operands."""
    key = (op, need, given)
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= BOUND:
            _plans.clear()
        plan = _plans[key] = PullbackPlan(Site(op, rule_of(op), need, given))
    return plan
