"""Expansions as programs: traced once for each op and specs of its operands."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Context
from typing import Any, Final, NamedTuple

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime.expanding._apply import apply_expansion, has_expansion, nested, within
from tenferro_runtime.ir._data_sizes import definitions, named_in, names_in
from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Literal, Program, inner_programs
from tenferro_runtime.runtime import Runtime
from tenferro_runtime.tracing._builder import Builder
from tenferro_tensor import HOST, REGISTRY, Op, Spec, compute_device
from tenferro_tensor_core import Decisions, Guard, InconclusiveDimError, RegistryError, TracingError


class TracedExpansion(NamedTuple):
    """A traced expansion.

    Attributes:
        program: the program; ``None`` where the examples leave a question about sizes open.
        asked: conditions on open sizes that it relies on, beyond what was known.
    """

    program: Program | None
    asked: tuple[Guard, ...] = ()


EXPANSIONS: Final[BoundedCache[tuple[Any, ...], TracedExpansion]] = BoundedCache(
    "tenferro_runtime: traced expansions", 1024
)
"""Programs by op, specs, what is known of open sizes, and the state of the registry."""


def expansion_of(
    op: Op,
    specs: tuple[Spec, ...],
    guards: tuple[Guard, ...] = (),
    examples: Mapping[str, int] | None = None,
    *,
    exact: bool = False,
) -> Program | None:
    """The program of an op that has an expansion, for operands of these specs.

    Its open sizes are those of the specs and of the metadata.

    Args:
        op: the op.
        specs: specs of its operands.
        guards: what is known of the open sizes.
        examples: sizes for which questions are answered that this leaves open.
        exact: whether loops in it are recorded as in a deterministic program.

    Returns:
        The program; ``None`` where the expansion asks of open sizes what the guards do not answer.

    Raises:
        RegistryError: the expansion fails, returns something else than the op infers, or uses itself without end.
        TracingError: it cannot be traced.
    """
    found = _known(op, specs, guards, examples or {}, exact)
    return None if found.asked else found.program


def conditions_of(
    op: Op, specs: tuple[Spec, ...], guards: tuple[Guard, ...], examples: Mapping[str, int]
) -> tuple[Guard, ...]:
    """The conditions on open sizes, beyond those known, under which an op can be expanded as the examples have it."""
    return _known(op, specs, guards, examples).asked


def _known(
    op: Op, specs: tuple[Spec, ...], guards: tuple[Guard, ...], examples: Mapping[str, int], exact: bool = False
) -> TracedExpansion:
    key: tuple[Any, ...] = (op, specs, guards, REGISTRY.count, exact)
    found = EXPANSIONS.get(key)
    if found is not None and not found.asked and found.program is not None:
        return found
    if found is not None:  # the answers to its questions depend on the examples
        key = (*key, tuple(examples.items()))
        found = EXPANSIONS.get(key)
    if found is None:
        found = EXPANSIONS.put(key, Context().run(_traced, nested(), op, specs, guards, examples, exact))
    return found


def _traced(
    around: tuple[Op, ...],
    op: Op,
    specs: tuple[Spec, ...],
    guards: tuple[Guard, ...],
    examples: Mapping[str, int],
    exact: bool,
) -> TracedExpansion:
    """The expansion traced in a context of its own: it knows nothing of scopes and traces that are open around it."""
    place = specs[0].place if specs else HOST
    with within(around), compute_device(place.device), Runtime(deterministic=exact):
        builder = Builder()
        decisions = Decisions(examples, builder)
        names = op.primitive.operands
        values = [builder.input(s, names[min(i, len(names) - 1)].lstrip("*")) for i, s in enumerate(specs)]
        sizes = set().union(named_in(op), *[names_in(s.shape) for s in specs])
        decisions.unknown |= sizes - examples.keys()  # arrays made of them belong to this trace, too
        try:
            with decisions:
                for guard in guards:
                    decisions.assume(guard.lhs, guard.op, guard.rhs)
                del decisions.guards[:]
                outs = apply_expansion(op, values)
            _require_alone(op, builder)
            program = builder.close(outs)
            _require_known_sizes(op, program)
            asked = tuple(decisions.guards)
            with within((*nested(), op)):
                return TracedExpansion(program, (*asked, *_asked_inside(program, (*guards, *asked), examples)))
        except InconclusiveDimError:
            return TracedExpansion(None)
        finally:
            builder.closed = True


def _require_alone(op: Op, builder: Builder) -> None:
    if builder.captured:
        value = builder.captured[0][0]
        raise TracingError(
            f"the expansion of {op.primitive.name} uses {value.spec!r} of class {type(value).__name__} from outside; "
            "it depends on the operands and the metadata alone: pass the value as an operand"
        )


def _require_known_sizes(op: Op, program: Program) -> None:
    if definitions(program):
        raise RegistryError(
            f"the expansion of {op.primitive.name} has sizes that depend on data ({', '.join(definitions(program))}); "
            "keep the full extent, and mask",
            primitive=op.primitive.name,
        )


def _asked_inside(program: Program, guards: tuple[Guard, ...], examples: Mapping[str, int]) -> tuple[Guard, ...]:
    """What the expansions in a program ask for; looking at all of them finds those that have no end."""
    asked: tuple[Guard, ...] = ()
    for eq in program.equations:
        for inner in inner_programs(eq.op.params):
            asked += _asked_inside(inner, (*guards, *asked), examples)
        if has_expansion(eq.op.primitive):
            given = specs_of(program.specs, eq)
            found = conditions_of(eq.op, given, (*guards, *asked), examples)
            asked += () if stays(eq.op, given) else found
    return asked


def stays(op: Op, specs: tuple[Spec, ...]) -> bool:
    """Whether programs keep an op that has an expansion: for a kernel that is better, or took the place of another."""
    p, backend = op.primitive, (specs[0].place if specs else HOST).device.kind
    entry = REGISTRY.find("expansion", p)
    kept = entry is not None and entry.keep and REGISTRY.registration("kernel", p, backend) is not None
    return kept or REGISTRY.is_replaced(p, backend)


def specs_of(known: Mapping[int, Spec], eq: Equation) -> tuple[Spec, ...]:
    """Specs of the operands of an equation, those that numbers stand in for included."""
    seen = [v.value.__class__ if isinstance(v, Literal) else known[v] for v in eq.operands]
    return operand_specs(eq.op, tuple(seen))
