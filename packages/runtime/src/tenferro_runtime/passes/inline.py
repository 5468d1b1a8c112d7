"""Inlining: the equations of a called program replace the call."""

from __future__ import annotations

from typing import Final

from tenferro_runtime.ir._call import call, instance, sizes_for
from tenferro_runtime.ir._program import Equation, Operand, Program
from tenferro_tensor import Spec, Tensor
from tenferro_tensor_core import Decisions

INLINE_MAX_EQUATIONS: Final = 20_000
"""Number of equations up to which a program may grow; a call that would lead beyond it stays a call."""


def inline_calls(program: Program) -> Program:
    """Replace calls by what they do, so that the other passes see it."""
    if all(eq.op.primitive is not call for eq in program.equations):
        return program
    return _Inliner(program).run()


class _Inliner:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.specs: dict[int, Spec] = dict(program.specs)
        self.constants: dict[int, Tensor] = dict(program.constants)
        self.known = {id(c): v for v, c in program.constants.items()}
        self.equations: list[Equation] = []
        self.next = max(self.specs, default=-1) + 1

    def run(self) -> Program:
        with Decisions(self.program.examples):
            final = self._copy(self.program, {v: v for v in self.specs}, own=True)
        return self.program.with_(
            constants=self.constants,
            equations=tuple(self.equations),
            output_ids=tuple([final[v] for v in self.program.output_ids]),
            specs=self.specs,
        )

    def _copy(self, program: Program, names: dict[int, int], own: bool) -> dict[int, int]:
        """Append the equations of a program; `names` says what its variables are called here."""
        for eq in program.equations:
            operands: tuple[Operand, ...] = tuple([names[v] if v.__class__ is int else v for v in eq.operands])
            if eq.op.primitive is call:
                params = eq.op.params
                specs = [self.specs[v] for v in operands]  # type: ignore[index]
                inner = instance(params["program"], sizes_for(params["program"], specs, params["sizes"]))
                if len(self.equations) + len(inner.equations) <= INLINE_MAX_EQUATIONS:
                    names.update(zip(eq.results, self._inlined(inner, operands), strict=True))
                    continue
            if not own:
                names.update((v, self._new(program.specs[v])) for v in eq.results)
            results = tuple([names[v] for v in eq.results])
            same = operands == eq.operands and results == eq.results
            self.equations.append(eq if same else Equation(eq.op, operands, results, eq.source))
        return names

    def _inlined(self, inner: Program, operands: tuple[Operand, ...]) -> list[int]:
        names: dict[int, int] = dict(zip(inner.input_ids, operands, strict=True))  # type: ignore[arg-type]
        for v, c in inner.constants.items():
            if id(c) not in self.known:
                self.known[id(c)] = self._new(c.spec)
                self.constants[self.known[id(c)]] = c
            names[v] = self.known[id(c)]
        after = self._copy(inner, names, own=False)
        return [after[v] for v in inner.output_ids]

    def _new(self, spec: Spec) -> int:
        v = self.next
        self.next += 1
        self.specs[v] = spec
        return v
