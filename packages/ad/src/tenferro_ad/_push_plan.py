"""Push plans: values and tangents through one op, as straight-line code where everything is concrete.

The mirror image of `_plan`: a rule is applied as it is written the first time, and traced and rendered from the second
time on, together with the op itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_ad._apply import Site, pushforward
from tenferro_ad._patience import CODES, Patience
from tenferro_ad._rules import rule_of
from tenferro_runtime.extension import BoundedCache, Builder, Program, optimise, render
from tenferro_tensor import SCALARS, Op, Spec, Tensor
from tenferro_tensor import dispatch as _select
from tenferro_tensor_core import TracingError, key_of

PATIENCE: Final = Patience()

Code = Callable[[list[Any], list[Any]], "tuple[list[Any], list[Any]]"]


class PushPlan:
    """Pushes tangents through one op.

    Attributes:
        site: the op and its circumstances.
    """

    __slots__ = ("_codes", "_uses", "site")

    def __init__(self, site: Site) -> None:
        self.site = site
        self._uses = 0
        self._codes: dict[tuple[Any, ...], Code] = {}

    def run(self, lower: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
        """Outputs and their tangents, ``None`` where a tangent is zero."""
        for t in tangents:
            if t.__class__ is not Tensor:
                return pushforward(self.site, lower, tangents, None)
        scalars: list[Any] | None = None
        for a in lower:
            if a.__class__ is not Tensor:
                if a.__class__ not in SCALARS:
                    return pushforward(self.site, lower, tangents, None)
                scalars = [a] if scalars is None else [*scalars, a]
        if _select.open_scopes:
            return pushforward(self.site, lower, tangents, None)
        key = () if scalars is None else key_of(tuple(scalars))
        code = self._codes.get(key)
        if code is None:
            code = self._code(lower, key)
        return code(lower, tangents)

    def rendered_for(self, lower: list[Any]) -> bool:
        """Whether there is straight-line code for these operands, Python scalars by value."""
        return key_of(tuple([a for a in lower if a.__class__ in SCALARS])) in self._codes

    def _by_rule(self, lower: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
        return pushforward(self.site, lower, tangents, None)

    def _code(self, lower: list[Any], key: tuple[Any, ...]) -> Code:
        self._uses += 1
        if len(self._codes) >= CODES:
            return self._by_rule
        if not PATIENCE.is_over(self.site.op.primitive, self._uses):
            return self._by_rule
        code = self._codes[key] = self._rendered_code(lower)
        return code

    def _rendered_code(self, lower: list[Any]) -> Code:
        traced = self.program(lower)
        if traced is None:
            return self._by_rule
        program, there, count = traced
        places = [i for i, a in enumerate(lower) if a.__class__ is Tensor]
        kernel = render(program, "raw")
        specs = program.outputs
        wrap = Tensor.wrap

        def code(lower: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
            raws = kernel(*[lower[i]._data for i in places], *[t._data for t in tangents])
            values = [wrap(raw, spec) for raw, spec in zip(raws, specs)]
            moved: list[Any] = [None] * count
            for k, t in zip(there, values[count:]):
                moved[k] = t
            return values[:count], moved

        return code

    def program(self, lower: list[Any]) -> tuple[Program, list[int], int] | None:
        """Values and tangents as a program of the arrays and then their tangents, Python scalars being literals.

        Returns it with the positions of the outputs that have tangents and the number of outputs; ``None`` for a rule
        that must be applied as it is.
        """
        site = self.site
        if any(isinstance(s, Spec) and s.symbolic for s in (*site.specs, *site.outs)):
            return None
        builder = Builder()
        ins = [builder.input(a.spec) if a.__class__ is Tensor else a for a in lower]
        ts = [builder.input(site.given[i]) for i in site.need]
        try:
            outs, pushed = pushforward(site, ins, ts, None)
            there = [k for k, t in enumerate(pushed) if t is not None]
            if builder.captured:
                return None
            return optimise(builder.close([*outs, *[pushed[k] for k in there]])), there, len(outs)
        except TracingError:
            return None


PUSH_PLANS: Final[BoundedCache[Any, PushPlan]] = BoundedCache("push plans", 4096, recency=False)


def push_plan(op: Op, need: tuple[int, ...], given: tuple[Any, ...]) -> PushPlan:
    """The plan for an op, the positions of its differentiated operands, and the specs of all operands."""
    key = (op, need, given)
    plan = PUSH_PLANS.table.get(key)
    if plan is None:
        plan = PUSH_PLANS.put(key, PushPlan(Site(op, rule_of(op), need, given)))
    return plan
