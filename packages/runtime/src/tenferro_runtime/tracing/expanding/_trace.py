"""Expansions as programs, traced once for each op and specs of its operands."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Context
from typing import Any, Final, NamedTuple

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime.ir._data_sizes import definitions, named_in, names_in
from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Literal, Program, inner_programs
from tenferro_runtime.runtime import Runtime
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing.expanding._apply import apply_expansion, has_expansion, nested, within
from tenferro_tensor import HOST, REGISTRY, Op, Spec, compute_device
from tenferro_tensor_core import Decisions, Guard, InconclusiveDimError, RegistryError, TracingError


class TracedExpansion(NamedTuple):
    """A traced expansion.

    Attributes:
        program: the program; ``None`` if the examples do not decide a question about sizes.
        asked: guards on symbolic sizes that it relies on, in addition to the given ones.
    """

    program: Program | None
    asked: tuple[Guard, ...] = ()


EXPANSIONS: Final[BoundedCache[tuple[Any, ...], TracedExpansion]] = BoundedCache(
    "tenferro_runtime: traced expansions", 1024
)
"""Programs by op, specs, guards on symbolic sizes, and the state of the registry."""


def expansion_of(
    op: Op,
    specs: tuple[Spec, ...],
    guards: tuple[Guard, ...] = (),
    examples: Mapping[str, int] | None = None,
    *,
    exact: bool = False,
) -> Program | None:
    """The expansion of an op as a program, for operands of given specs.

    Its symbolic sizes are those of the specs and of the metadata.

    Args:
        op: the op.
        specs: specs of its operands.
        guards: guards on the symbolic sizes.
        examples: example sizes for questions that the guards do not decide.
        exact: whether loops are rolled as in a deterministic program.

    Returns:
        The program; ``None`` if the expansion needs more guards.

    Raises:
        RegistryError: the expansion fails, returns other specs than inference, or uses itself without end.
        TracingError: it cannot be traced.
    """
    found = _known(op, specs, guards, examples or {}, exact)
    return None if found.asked else found.program


def conditions_of(
    op: Op, specs: tuple[Spec, ...], guards: tuple[Guard, ...], examples: Mapping[str, int]
) -> tuple[Guard, ...]:
    """The additional guards on symbolic sizes that the expansion of an op needs, as decided by the examples."""
    return _known(op, specs, guards, examples).asked


def _known(
    op: Op, specs: tuple[Spec, ...], guards: tuple[Guard, ...], examples: Mapping[str, int], exact: bool = False
) -> TracedExpansion:
    key: tuple[Any, ...] = (op, specs, guards, REGISTRY.count, exact)
    found = EXPANSIONS.get(key)
    if found is not None and not found.asked and found.program is not None:
        return found
    if found is not None:  # the examples decide its questions
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
    """Trace the expansion in a separate context, independent of enclosing scopes and traces."""
    place = specs[0].place if specs else HOST
    with within(around), compute_device(place.device), Runtime(deterministic=exact):
        builder = Builder()
        decisions = Decisions(examples, builder)
        names = op.primitive.operands
        values = [builder.input(s, names[min(i, len(names) - 1)].lstrip("*")) for i, s in enumerate(specs)]
        sizes = set().union(named_in(op), *[names_in(s.shape) for s in specs])
        decisions.unknown |= sizes - examples.keys()  # arrays made of them also belong to this trace
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
            "it may depend on the operands and the metadata only: pass the value as an operand"
        )


def _require_known_sizes(op: Op, program: Program) -> None:
    if definitions(program):
        raise RegistryError(
            f"the expansion of {op.primitive.name} has sizes that depend on data ({', '.join(definitions(program))}); "
            "keep the full extent, and mask",
            primitive=op.primitive.name,
        )


def _asked_inside(program: Program, guards: tuple[Guard, ...], examples: Mapping[str, int]) -> tuple[Guard, ...]:
    """The guards that the expansions in a program need; visiting all of them detects endless ones."""
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
    """Whether programs keep an op that has an expansion, because of a better or replaced kernel.

    Args:
        op: the op.
        specs: specs of its operands.

    Returns:
        True if it stays.
    """
    p, backend = op.primitive, (specs[0].place if specs else HOST).device.kind
    entry = REGISTRY.find("expansion", p)
    kept = entry is not None and entry.keep and REGISTRY.registration("kernel", p, backend) is not None
    return kept or REGISTRY.is_replaced(p, backend)


def specs_of(known: Mapping[int, Spec], eq: Equation) -> tuple[Spec, ...]:
    """Specs of the operands of an equation, including those of literals.

    Args:
        known: specs of the variables.
        eq: the equation.

    Returns:
        The specs.
    """
    seen = [v.value.__class__ if isinstance(v, Literal) else known[v] for v in eq.operands]
    return operand_specs(eq.op, tuple(seen))
