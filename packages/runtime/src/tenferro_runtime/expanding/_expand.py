"""The pass that puts expansions in the place of the operations that have one."""

from __future__ import annotations

from collections.abc import Mapping

from tenferro_runtime.expanding._apply import has_expansion
from tenferro_runtime.expanding._trace import expansion_of, specs_of
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.passes.inline import inlined
from tenferro_tensor import HOST, REGISTRY, Spec


def expand(program: Program) -> Program:
    """Replace what has an expansion by it; its equations come from the line of the one that they replace.

    An op stays where a kernel of it took the place of another one, where its expansion was registered with ``keep``
    and its backend has a kernel, and where its expansion asks more about open sizes than the program knows.
    """
    if not any(map(has_expansion, {eq.op.primitive for eq in program.equations})):
        return program

    def expansion(eq: Equation, specs: Mapping[int, Spec]) -> Program | None:
        if not has_expansion(eq.op.primitive):
            return None
        given = specs_of(specs, eq)
        return None if _stays(eq, given) else expansion_of(eq.op, given, program.guards, program.examples)

    return inlined(program, expansion, keep_lines=False)


def _stays(eq: Equation, specs: tuple[Spec, ...]) -> bool:
    p = eq.op.primitive
    backend = (specs[0].place if specs else HOST).device.kind
    entry = REGISTRY.find("expansion", p)
    kept = entry is not None and entry.keep and REGISTRY.registration("kernel", p, backend) is not None
    return kept or REGISTRY.is_replaced(p, backend)
