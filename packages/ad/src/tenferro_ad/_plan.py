"""Pullback plans: how to pull a cotangent through one op, for given differentiated operands and operand specs.

A rule is applied as it is written the first time. From the second time on it is traced once for these specs, and runs
as straight-line code: over raw arrays where everything is concrete, over values otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tenferro_ad._apply import Site, pullback
from tenferro_ad._keep import keeper
from tenferro_ad._patience import CODES, Patience
from tenferro_ad._pull_code import Pull, pull_code
from tenferro_ad._rules import rule_of
from tenferro_runtime.extension import BoundedCache, Builder, General, Program, optimise
from tenferro_tensor import SCALARS, Op, Spec
from tenferro_tensor import dispatch as _select
from tenferro_tensor_core import TracingError, key_of

How = tuple[tuple[int, ...], Pull, Callable[..., tuple[Any, ...]]]

PATIENCE: Final = Patience()


class PullbackPlan:
    """Pulls cotangents through one op.

    Attributes:
        site: the op and its circumstances.
        active: whether a derivative passes.
        many: whether the op has several outputs.
        how: what a node saves, as positions among (operands..., outputs...); what it calls with a cotangent and the
            saved values; and the function that picks the saved values. They are one tuple, since a thread may
            record while another one renders.
    """

    __slots__ = ("_codes", "_uses", "active", "how", "many", "site")

    def __init__(self, site: Site) -> None:
        self.site = site
        self.active, self.many = site.active, site.many
        self.how: How
        self._set(site.save, self.pull_first)
        self._uses = 0
        self._codes: dict[tuple[Any, ...], Pull] = {}

    def _set(self, save: tuple[int, ...], pull: Pull) -> None:
        self.how = save, pull, keeper(len(self.site.given), save)

    @property
    def op(self) -> Op:
        """The op, which errors name."""
        return self.site.op

    def pull_first(self, g: Any, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """Apply the rule, and think of rendering it."""
        save, pull, _ = self.how
        if pull != self.pull_first:
            if save != self.site.save:
                left = {*save}
                saved = tuple([v for i, v in zip(self.site.save, saved) if i in left])
            return pull(g, saved)
        self._uses += 1
        if not _select.open_scopes and PATIENCE.is_over(self.op.primitive, self._uses):
            self._render()
            return self.pull_first(g, saved)
        return self.pull_by_rule(g, saved)

    def pull_by_rule(self, g: Any, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """Apply the rule as it is written; works on values of every kind."""
        site = self.site
        count = len(site.given)
        slots: list[Any] = [None] * (count + len(site.outs))
        for i, v in zip(site.save, saved):
            slots[i] = v
        return pullback(site, slots[:count], slots[count:], g if self.many else (g,))

    def _render(self) -> None:
        site = self.site
        if any(isinstance(s, Spec) and s.symbolic for s in (*site.specs, *site.outs)):
            self._set(site.save, self.pull_by_rule)
            return
        if self.many:
            self._set(site.save, self._pull_many)
            return
        if any(i < len(site.given) and site.given[i] in SCALARS for i in site.save):
            self._set(site.save, self._pull_scalar)
            return
        traced = traced_pullback(site, (True,))
        if traced is None:
            self._set(site.save, self.pull_by_rule)
            return
        program, places = traced
        save = site.save
        if isinstance(site.rule, General):
            # Such a rule has named nothing, so only now it is known what it reads.
            used = _used(program)
            save = tuple([i for k, i in enumerate(site.save) if program.input_ids[k + 1] in used])
            program = _without_inputs(program, used | {program.input_ids[0]})
        self._set(save, pull_code(site, program, places, save, (True,), self.pull_by_rule))

    def _pull_scalar(self, g: Any, saved: tuple[Any, ...]) -> tuple[Any, ...]:
        """For saved Python scalars: code for each of the first few values, then one that takes the value."""
        key = key_of(tuple([v for v in saved if v.__class__ in SCALARS]))
        code = self._codes.get(key)
        if code is None:
            if len(self._codes) >= CODES:
                key = ()
                code = self._codes.get(key)
            if code is None:
                code = self._codes[key] = self._scalar_code(key, saved)
        return code(g, saved)

    def _scalar_code(self, key: tuple[Any, ...], saved: tuple[Any, ...]) -> Pull:
        site = self.site
        scalars = {i: v for i, v in zip(site.save, saved) if v.__class__ in SCALARS} if key else None
        traced = traced_pullback(site, (True,), scalars)
        if traced is None:
            return self.pull_by_rule
        return pull_code(site, *traced, site.save, (True,), self.pull_by_rule, literal=bool(key))

    def _pull_many(self, gs: list[Any], saved: tuple[Any, ...]) -> tuple[Any, ...]:
        mask = tuple([g is not None for g in gs])
        code = self._codes.get(mask)
        if code is None:
            traced = traced_pullback(self.site, mask)
            if traced is None:
                code = self.pull_by_rule
            else:
                code = pull_code(self.site, *traced, self.site.save, mask, self.pull_by_rule)
            self._codes[mask] = code
        return code(gs, saved)


def traced_pullback(
    site: Site, mask: tuple[bool, ...], scalars: Mapping[int, Any] | None = None
) -> tuple[Program, tuple[int, ...]] | None:
    """The pullback as a program of the cotangents that are there and of the saved values.

    Python scalars among the saved values are literals where `scalars` has them by position, else inputs without
    axes. Returns the program and the positions among
    ``site.need`` of its outputs; ``None`` for a rule that cannot be traced, which must be applied as it is.
    """
    builder = Builder()
    cts = [builder.input(s) if there else None for s, there in zip(site.outs, mask)]
    count = len(site.given)
    slots: list[Any] = [None] * (count + len(site.outs))
    for i in site.save:
        if i >= count:
            slots[i] = builder.input(site.outs[i - count])
        elif scalars is not None and i in scalars:
            slots[i] = scalars[i]
        elif site.given[i] in SCALARS:
            slots[i] = builder.input(site.specs[i].with_(shape=()))
        else:
            slots[i] = builder.input(site.given[i])
    try:
        pulled = pullback(site, slots[:count], slots[count:], cts)
        if builder.captured:
            return None
        there = tuple([k for k, c in enumerate(pulled) if c is not None])
        return optimise(builder.close([pulled[k] for k in there])), there
    except TracingError:
        return None


def _used(program: Program) -> set[int]:
    found = set(program.output_ids)
    for eq in program.equations:
        found.update(eq.variables)
    return found


def _without_inputs(program: Program, kept: set[int]) -> Program:
    return Program(
        tuple([v for v in program.input_ids if v in kept]),
        program.constants,
        program.equations,
        program.output_ids,
        program.specs,
    )


PLANS: Final[BoundedCache[Any, PullbackPlan]] = BoundedCache("pullback plans", 4096, recency=False)


def pullback_plan(op: Op, need: tuple[int, ...], given: tuple[Any, ...]) -> PullbackPlan:
    """The plan for an op, the positions of its differentiated operands, and the specs of all operands."""
    key = (op, need, given)
    plan = PLANS.table.get(key)
    if plan is None:
        plan = PLANS.put(key, PullbackPlan(Site(op, rule_of(op), need, given)))
    return plan
