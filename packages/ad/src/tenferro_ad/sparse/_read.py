"""Derives relations from a program, by abstract interpretation of its equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_ad._rules import rule_of
from tenferro_ad.sparse._known import KnownResult, known_constant
from tenferro_ad.sparse._linear_forms import label, renumbered
from tenferro_ad.sparse._relation import Relation, Shape, dense, identity, of_maps, reshaped
from tenferro_ad.sparse._zeros import chosen_elements
from tenferro_runtime.extension import (
    REGISTRY,
    Equation,
    Inactive,
    IndexEntries,
    IndexMap,
    Literal,
    MissingRuleError,
    Op,
    Program,
    SparsityStep,
    Spec,
    TenferroError,
    catalog,
    tensor,
)
from tenferro_runtime.ir import instance, sizes_for
from tenferro_runtime.tracing.expanding import expansion_of, has_expansion
from tenferro_tensor_core import DimLike, evaluate
from tenferro_tensor_core.forks import importing

Part = Sequence[IndexMap | IndexEntries] | None
"""The dependences of an output on an operand: ``None``, or a union."""


class Abstract(NamedTuple):
    """The abstract value of a variable.

    Attributes:
        relations: dependences on each chosen argument; ``None`` for none.
        value: for a value that depends on no argument, a function of the sizes that computes it.
    """

    relations: tuple[Relation | None, ...]
    value: Callable[[dict[str, int]], Any] | None = None

    @property
    def constant(self) -> bool:
        """Whether its derivative is zero."""
        return all(r is None for r in self.relations)


class Reader:
    """Interprets programs on relations.

    Attributes:
        count: number of chosen arguments.
        lift: extents of the enclosing loops; each value has an axis for the steps of each.
        exact: whether to read the elements of constants (indices and zeros). The resulting relations have no closed
            form, so fixpoints over them cannot detect convergence.
    """

    def __init__(self, count: int, lift: Shape = (), exact: bool = True) -> None:
        self.count, self.lift, self.exact = count, lift, exact

    @property
    def nothing(self) -> Abstract:
        return Abstract((None,) * self.count)

    def read(self, program: Program, inputs: Sequence[Abstract]) -> list[Abstract]:
        """The dependences of a program's outputs."""
        env = self.environment(program, inputs)
        return [env[v] for v in program.output_ids]

    def environment(self, program: Program, inputs: Sequence[Abstract]) -> dict[int, Abstract]:
        """The dependences of each variable of a program."""
        env = {v: Abstract((None,) * self.count, known_constant(c)) for v, c in program.constants.items()}
        env.update(zip(program.input_ids, inputs, strict=True))
        for eq in program.equations:
            ins = [self._literal(v) if isinstance(v, Literal) else env[v] for v in eq.operands]
            in_specs = tuple(
                [tensor(v.value).spec if isinstance(v, Literal) else program.specs[v] for v in eq.operands]
            )
            out_specs = tuple([program.specs[v] for v in eq.results])
            env.update(zip(eq.results, self.step(eq, ins, in_specs, out_specs), strict=True))
        return env

    def _literal(self, v: Literal) -> Abstract:
        return Abstract((None,) * self.count, known_constant(v.value))

    def step(
        self, eq: Equation, ins: Sequence[Abstract], in_specs: tuple[Spec, ...], out_specs: tuple[Spec, ...]
    ) -> list[Abstract]:
        """The dependences of an equation's results."""
        op = eq.op
        if all(x.constant for x in ins):
            if any(x.value is None for x in ins):
                return [self.nothing] * len(out_specs)
            values = tuple([x.value for x in ins])
            return [Abstract((None,) * self.count, KnownResult(op, values, k)) for k in range(len(out_specs))]
        structured = STRUCTURED.get(op.primitive)
        if structured is not None:
            return structured(self, op, ins, in_specs, out_specs)
        if op.primitive is catalog.reshape:
            return [self._reshaped(ins[0], out_specs[0])]
        if "program" in op.params:
            inner = instance(
                op.params["program"], sizes_for(op.params["program"], in_specs, op.params.get("sizes", ()))
            )
            return self.read(inner, ins)
        if _inactive(op):
            return [self.nothing] * len(out_specs)
        if op.primitive.elementwise and _rule(op) is None:
            return [self._elementwise(op, ins, in_specs, out_specs)]
        return self._by_rule(op, ins, in_specs, out_specs)

    def _elementwise(
        self, op: Op, ins: Sequence[Abstract], in_specs: tuple[Spec, ...], out_specs: tuple[Spec, ...]
    ) -> Abstract:
        """The dependences of an elementwise result: the same elements, except those that a constant masks."""
        (out,) = out_specs
        chosen = None
        if any(x.value is not None for x in ins):
            chosen = chosen_elements(SparsityStep(op, in_specs, out_specs, self._values(ins)))
        if chosen is None:
            return self.joined(ins, out)
        through = [
            x if part is None or x.constant else self.mapped(x, self.local((part,), out, out))
            for x, part in zip(ins, chosen, strict=True)
        ]
        return self.joined(through, out)

    def _values(self, ins: Sequence[Abstract]) -> tuple[Any, ...]:
        return tuple([x.value if self.exact else None for x in ins])

    def joined(self, ins: Sequence[Abstract], out: Spec) -> Abstract:
        """The union of dependences: of an elementwise function, or of a choice between values."""
        if not out.inexact:
            return self.nothing
        found: list[Relation | None] = []
        for j in range(self.count):
            total: Relation | None = None
            for x in ins:
                r = x.relations[j]
                if r is not None:
                    total = r if total is None else total | r
            found.append(total)
        return Abstract(tuple(found))

    def mapped(self, x: Abstract, local: Relation) -> Abstract:
        """The dependences of an output through one operand; `local` includes the axes of enclosing loops."""
        if local.empty:
            return self.nothing
        return Abstract(tuple([None if r is None else local.after(r) for r in x.relations]))

    def local(self, part: Part, out: Spec, x: Spec) -> Relation:
        """The relation of an op between an output and an operand, at every step of the enclosing loops."""
        shape, source = (*self.lift, *out.shape), (*self.lift, *x.shape)
        lifted = [] if part is None else [self._lifted(p, out, x) for p in part]
        return of_maps(shape, source, lifted)

    def _lifted(self, part: IndexMap | IndexEntries, out: Spec, x: Spec) -> IndexMap | IndexEntries:
        count = len(self.lift)
        if not count:
            return part
        if isinstance(part, IndexEntries):
            return IndexEntries(_Repeated(part, self.lift, out.size, x.size).compute)
        numbers = {k: k + count for k in range(len(part.extents))}
        loops = tuple([label(k) for k in range(count)])
        output, operand, where = (
            tuple([renumbered(f, numbers) for f in forms]) for forms in (part.output, part.operand, part.where)
        )
        return IndexMap((*self.lift, *part.extents), (*loops, *output), (*loops, *operand), where)

    def _reshaped(self, x: Abstract, out: Spec) -> Abstract:
        shape = (*self.lift, *out.shape)
        return Abstract(tuple([None if r is None else reshaped(r, shape) for r in x.relations]))

    def _by_rule(
        self, op: Op, ins: Sequence[Abstract], in_specs: tuple[Spec, ...], out_specs: tuple[Spec, ...]
    ) -> list[Abstract]:
        rule = _rule(op)
        if rule is None:
            program = _expansion(op, in_specs)
            if program is not None:
                return self.read(program, ins)
        step = SparsityStep(op, in_specs, out_specs, self._values(ins))
        parts = None if rule is None else rule(step)
        found = []
        for k, out in enumerate(out_specs):
            through = []
            for i, (x, spec) in enumerate(zip(ins, in_specs, strict=True)):
                if x.constant or not out.inexact:
                    continue
                part = dense(out.shape, spec.shape).maps if parts is None else parts[k][i]
                through.append(self.mapped(x, self.local(part, out, spec)))
            found.append(self.joined(through, out) if through else self.nothing)
        return found


class _Repeated(NamedTuple):
    """Pairs of indices, repeated for every step of the enclosing loops."""

    part: IndexEntries
    lift: Shape
    size: DimLike
    source: DimLike

    def compute(self, sizes: dict[str, int]) -> tuple[Any, Any]:
        rows, columns = self.part.compute(sizes)
        steps = np.arange(prod([evaluate(n, sizes) for n in self.lift]))[:, None]
        size, source = evaluate(self.size, sizes), evaluate(self.source, sizes)
        return (rows + steps * size).reshape(-1), (columns + steps * source).reshape(-1)


_core_rules = False


def _rule(op: Op) -> Callable[[SparsityStep], Any] | None:
    """The sparsity rule of a primitive; rules of core primitives are registered on first use."""
    global _core_rules
    if not _core_rules:
        with importing():
            from tenferro_ad.sparse import rules

        rules.register(REGISTRY)
        _core_rules = True
    return REGISTRY.find("sparsity", op.primitive)


def _inactive(op: Op) -> bool:
    try:
        return isinstance(rule_of(op), Inactive)
    except MissingRuleError:
        return False


def _expansion(op: Op, specs: tuple[Spec, ...]) -> Program | None:
    """The expansion of an op, or ``None`` if it needs decisions about sizes."""
    if not has_expansion(op.primitive):
        return None
    try:
        return expansion_of(op, specs)
    except TenferroError:
        return None


Structured = Callable[[Reader, Op, Sequence[Abstract], tuple[Spec, ...], tuple[Spec, ...]], list[Abstract]]

STRUCTURED: Final[dict[Any, Structured]] = {}
"""Readers of primitives whose metadata are programs."""


def program_environment(program: Program, wanted: Sequence[int]) -> dict[int, Abstract]:
    """The dependences of each variable of a program on the inputs at given positions."""
    reader = Reader(len(wanted))
    inputs = []
    for i, spec in enumerate(program.inputs):
        relations = tuple([identity(spec.shape) if i == j else None for j in wanted])
        inputs.append(Abstract(relations))
    return reader.environment(program, inputs)
