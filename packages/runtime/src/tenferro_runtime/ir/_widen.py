"""Converts programs on narrow floats to programs on float32: a conversion before and after each step that computes.

No conversion between steps is omitted: the program rounds where its eager steps do, and no pass treats a conversion to
a narrow type and back as an identity. Steps that only move elements keep the narrow type.
"""

from __future__ import annotations

from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_tensor import Spec, catalog
from tenferro_tensor.narrow import rounded, wide, widens


def computes_narrow(program: Program) -> bool:
    """Whether a step of a program, not counting nested programs, still computes with narrow floats."""
    if not any(s.narrow for s in program.specs.values()):
        return False
    specs = program.specs
    return any(widens(eq.op, [specs[v] for v in (*eq.variables, *eq.results)]) for eq in program.equations)


def widened(program: Program) -> Program:
    """The program with its steps on float16 and bfloat16 widened; itself if there are none.

    Args:
        program: the program.

    Returns:
        The program with steps on float16 and bfloat16 widened; itself if there are none.
    """
    if not any(s.narrow for s in program.specs.values()):
        return program
    return _Widening(program).run()


class _Widening:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.specs: dict[int, Spec] = dict(program.specs)
        self.equations: list[Equation] = []
        self.wide: dict[int, int] = {}
        self.next = max(self.specs, default=-1) + 1

    def run(self) -> Program:
        for eq in self.program.equations:
            known = [self.specs[v] for v in (*eq.variables, *eq.results)]
            self.equations.append(eq) if not widens(eq.op, known) else self._widen(eq)
        if len(self.equations) == len(self.program.equations):
            return self.program
        return self.program.with_(equations=tuple(self.equations), specs=self.specs)

    def _widen(self, eq: Equation) -> None:
        seen = tuple([v.value.__class__ if isinstance(v, Literal) else self.specs[v] for v in eq.operands])
        goal = operand_specs(eq.op, seen)
        operands: list[Operand] = [
            Literal(rounded(v.value, spec.dtype)) if isinstance(v, Literal) else self._widened(v, eq)
            for v, spec in zip(eq.operands, goal, strict=True)
        ]
        results = tuple([self._new(wide(self.specs[v])) if self.specs[v].narrow else v for v in eq.results])
        self.equations.append(Equation(eq.op, tuple(operands), results, eq.source))
        for narrow, found in zip(eq.results, results, strict=True):
            if narrow != found:
                self._convert(found, narrow, eq)

    def _widened(self, v: int, eq: Equation) -> int:
        spec = self.specs[v]
        if not spec.narrow:
            return v
        if v not in self.wide:
            self.wide[v] = self._new(wide(spec))
            self._convert(v, self.wide[v], eq)
        return self.wide[v]

    def _convert(self, source: int, target: int, eq: Equation) -> None:
        op = catalog.convert.op(dtype=self.specs[target].dtype)
        self.equations.append(Equation(op, (source,), (target,), eq.source))

    def _new(self, spec: Spec) -> int:
        v = self.next
        self.next += 1
        self.specs[v] = spec
        return v
