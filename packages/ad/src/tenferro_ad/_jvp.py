"""Forward mode of one op: its outputs and their tangents, from its operands and some of their tangents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from tenferro_ad._apply import apply_jvp
from tenferro_ad._derivative import Derivative, Run, Variant, key_of_numbers
from tenferro_ad._steps import Derivation
from tenferro_runtime.extension import optimise
from tenferro_runtime.tracing import staged
from tenferro_tensor import SCALARS
from tenferro_tensor.calls import Entry


class Jvp(Derivative):
    """``jvp(operands, tangents)`` returns the outputs, then their tangents, ``None`` for a zero tangent."""

    __slots__ = ()
    traces: ClassVar = Counter()

    def entry(self, before: Entry, head: Run) -> Entry:
        return Entry(self.key, head, before.out)

    def variant(self, given: Any, saved: Any) -> Variant:
        return (), key_of_numbers([a for a in given if a.__class__ in SCALARS])

    def by_rule(self, given: Any, saved: Any) -> tuple[Any, ...]:
        outs, tangents = apply_jvp(self.site, given, saved, None)
        return (*outs, *tangents)

    def numbers(self, given: Any, saved: Any) -> dict[int, Any]:
        return {i: a for i, a in enumerate(given) if a.__class__ in SCALARS}

    def otherwise(self, d: Derivation) -> Run:
        return self.by_rule  # keeps values concrete where only the tangents are traced or batched

    def derive(self, variant: Variant, numbers: Mapping[int, Any] | None) -> Derivation | None:
        site = self.site
        if numbers is None:
            return None
        inputs = tuple([numbers.get(i) for i in range(len(site.given))] + [None] * len(site.need))
        arguments = tuple([i for i in range(len(inputs)) if i not in numbers])

        def pushed(*xs: Any) -> list[Any]:
            outs, tangents = apply_jvp(site, list(xs[: len(site.given)]), xs[len(site.given) :], None)
            return [*outs, *tangents]

        operands = [numbers.get(i, s) for i, s in enumerate(site.given)]
        made = staged(pushed, [*operands, *[site.given[i] for i in site.need]])
        if made.captured:
            return None
        program = optimise(made.program)
        variables = dict(zip(made.there, program.output_ids))
        found = [(variables[k], s) if k in variables else None for k, s in enumerate((*site.outs, *site.outs))]
        return Derivation(program, arguments, tuple(found), inputs, {})
