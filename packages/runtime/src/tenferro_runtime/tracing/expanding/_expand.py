"""The pass that replaces operations by their expansions, including those in loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._widen import widened
from tenferro_runtime.passes.inline import inlined
from tenferro_runtime.runtime import how_of, optimised_like
from tenferro_runtime.tracing.expanding._apply import has_expansion
from tenferro_runtime.tracing.expanding._trace import conditions_of, expansion_of, specs_of, stays
from tenferro_tensor import Op, Primitive, Spec
from tenferro_tensor_core import Guard


def expand(program: Program) -> Program:
    """Replace ops by their expansions; the new equations keep the source line of the replaced one.

    Steps on narrow floats first become steps on float32 with conversions around them.

    An op is kept if its kernel was replaced, if its expansion was registered with ``keep`` and its backend has a
    kernel, or if its expansion needs more guards on symbolic sizes than the program has. A deterministic program
    expands only ops that hold programs, so that it has the bits of eager calls.

    Args:
        program: the program.

    Returns:
        The expanded program.
    """
    return _expanded(program, program.guards, program.examples)


def _expanded(program: Program, guards: tuple[Guard, ...], examples: Mapping[str, int]) -> Program:
    exact = how_of(program).exact
    program = widened(program)
    having = _having(program)

    def expansion(eq: Equation, specs: Mapping[int, Spec]) -> Program | None:
        if eq.op.primitive not in having and not has_expansion(eq.op.primitive):
            return None
        if exact and not _bodies(eq.op.params):
            return None
        given = specs_of(specs, eq)
        return None if stays(eq.op, given) else expansion_of(eq.op, given, guards, examples, exact=exact)

    def body(inner: Program) -> Program:
        found = _expanded(inner, guards, examples)
        return inner if found is inner else optimised_like(found, inner)

    return _with_bodies(widened(inlined(program, expansion, keep_lines=False)) if having else program, body)


def with_conditions(program: Program) -> Program:
    """The program with the guards on symbolic sizes that its expansions need.

    Args:
        program: the program.

    Returns:
        The program.
    """
    guards = list(program.guards)
    for specs, eq in _expandable(program) if program.symbolic else ():
        given = specs_of(specs, eq)
        if not stays(eq.op, given):
            guards += conditions_of(eq.op, given, tuple(guards), program.examples)
    return program if len(guards) == len(program.guards) else program.with_(guards=tuple(guards))


def _expandable(program: Program) -> Iterator[tuple[Mapping[int, Spec], Equation]]:
    """The equations that have expansions, with the specs of the program."""
    having = _having(program)
    for eq in program.equations:
        if eq.op.primitive in having:
            yield program.specs, eq
        for inner in _bodies(eq.op.params):
            yield from _expandable(inner)


def _having(program: Program) -> set[Primitive]:
    return {p for p in {eq.op.primitive for eq in program.equations} if has_expansion(p)}


def _bodies(params: Mapping[str, Any]) -> list[Program]:
    """The programs in metadata that share the sizes of the enclosing program, unlike a called program."""
    if "sizes" in params:
        return []
    found = []
    for value in params.values():
        found += [v for v in (value if value.__class__ is tuple else (value,)) if isinstance(v, Program)]
    return found


def _with_bodies(program: Program, change: Callable[[Program], Program]) -> Program:
    """The program with other bodies and branches; itself if nothing changes."""
    changed: dict[Op, Op] = {}
    for eq in program.equations:
        old = _bodies(eq.op.params)
        if old and eq.op not in changed:
            new = {id(b): change(b) for b in old}
            if any(new[id(b)] is not b for b in old):
                changed[eq.op] = eq.op.primitive.op(**{k: _replaced(v, new) for k, v in eq.op.params.items()})
    if not changed:
        return program
    return program.with_(
        equations=tuple(
            [
                Equation(changed[eq.op], eq.operands, eq.results, eq.source) if eq.op in changed else eq
                for eq in program.equations
            ]
        )
    )


def _replaced(value: Any, new: Mapping[int, Program]) -> Any:
    if value.__class__ is tuple:
        return tuple([new.get(id(v), v) for v in value])
    return new.get(id(value), value)
