"""Reverse mode of one op: cotangents of its operands, from cotangents of its outputs and saved values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from tenferro_ad._apply import CallSite, apply_vjp
from tenferro_ad._derivative import PLAIN, Derivative, Run, Variant, key_of_numbers
from tenferro_ad._steps import Derivation
from tenferro_runtime.extension import General, optimise
from tenferro_runtime.tracing import staged
from tenferro_tensor import SCALARS
from tenferro_tensor.calls import Entry

_CONVERTERS: Final = {"float64": float, "complex128": complex}
"""Converters of Python numbers by dtype; other dtypes use NumPy's scalar type."""


class Vjp(Derivative):
    """The `vjp` of nodes: ``vjp(g, saved)``.

    Once the rule of an op is traced, the op's entry calls the steps directly; earlier nodes keep this object.

    Attributes:
        kept: indices of the saved values that the steps read, or ``None`` for all.
    """

    __slots__ = ("kept",)
    traces: ClassVar = Counter()

    def __init__(self, site: CallSite, key: tuple[Any, ...]) -> None:
        super().__init__(site, key)
        self.kept: tuple[int, ...] | None = None

    def __call__(self, given: Any, saved: Any) -> Any:
        if self.kept is not None:
            saved = tuple([saved[i] for i in self.kept])
        return self.head(given, saved)

    def entry(self, before: Entry, head: Run) -> Entry:
        save = self.site.save if self.kept is None else tuple([self.site.save[i] for i in self.kept])
        return Entry(self.key, before.run, before.out, save, head)

    def variant(self, given: Any, saved: Any) -> Variant:
        there = tuple([g is not None for g in given]) if self.site.many else ()
        return there, key_of_numbers([v for v in saved if v.__class__ in SCALARS])

    def by_rule(self, given: Any, saved: Any) -> tuple[Any, ...]:
        site = self.site
        count = len(site.given)
        slots: list[Any] = [None] * (count + len(site.outs))
        for i, v in zip(site.save, saved):
            slots[i] = v
        return apply_vjp(site, slots[:count], slots[count:], given if site.many else (given,))

    def numbers(self, given: Any, saved: Any) -> dict[int, Any]:
        return {i: v for i, v in zip(self.site.save, saved) if v.__class__ in SCALARS}

    def _run_for(self, variant: Variant, given: Any, saved: Any) -> Run:
        run = super()._run_for(variant, given, saved)
        return run if self.kept is None else self

    def derive(self, variant: Variant, numbers: Mapping[int, Any] | None) -> Derivation | None:
        site = self.site
        there = variant[0] or (True,)
        count, first = len(site.given), sum(there)
        slots: list[Any] = [None] * (count + len(site.outs))
        arguments, converters = [*range(first)], {}
        inputs: list[Any] = [None] * first
        for i in site.save:
            number = i < count and site.given[i] in SCALARS
            if number and numbers is not None:
                slots[i] = numbers[i]
                inputs.append(numbers[i])
                continue
            if number:
                dtype = site.specs[i].dtype
                slots[i] = site.specs[i].with_(shape=())
                converters[len(inputs)] = _CONVERTERS.get(dtype.name, dtype.type)
            else:
                slots[i] = site.given[i] if i < count else site.outs[i - count]
            arguments.append(len(inputs))
            inputs.append(object if number else None)

        def pulled(*xs: Any) -> Sequence[Any]:
            values = list(xs[len(there) :])
            return apply_vjp(site, values[:count], values[count:], xs[: len(there)])

        made = staged(pulled, [*[s if t else None for s, t in zip(site.outs, there)], *slots])
        if made.captured:
            return None
        program = optimise(made.program)
        if isinstance(site.rule, General) and variant == PLAIN:
            # A General rule names no parameters, so only the trace shows what it reads.
            read = {v for eq in program.equations for v in eq.variables} | {*program.output_ids, program.input_ids[0]}
            self.kept = tuple([k for k, v in enumerate(program.input_ids[1:]) if v in read])
            kept = [0, *[k + 1 for k in self.kept]]
            program = program.with_(input_ids=tuple([program.input_ids[k] for k in kept]))
            arguments, inputs = [*range(len(kept))], [None] * len(kept)
        variables = dict(zip(made.there, program.output_ids))
        found = [(variables[k], site.given[i]) if k in variables else None for k, i in enumerate(site.need)]
        return Derivation(program, tuple(arguments), tuple(found), tuple(inputs), converters)
