"""Inlining: the equations of a called program replace the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tenferro_runtime.ir._call import call, instance, sizes_for
from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_runtime.ir._source import Source
from tenferro_tensor import Op, Primitive, Spec, Tensor, catalog
from tenferro_tensor.identity import identity
from tenferro_tensor_core import Decisions

INLINE_MAX_EQUATIONS: Final = 20_000
"""Largest number of equations of an inlined program; a call that would exceed it stays a call."""

Called = Callable[[Equation, Mapping[int, Spec]], Program | None]
"""Returns the program that replaces an equation, over the sizes of the enclosing program; ``None`` to keep it.

The equation has variables of the enclosing program, whose specs are given."""


def inline_calls(program: Program) -> Program:
    """Replace calls by the equations of the called programs, for the benefit of other passes.

    Args:
        program: the program.

    Returns:
        The rewritten program.
    """
    if all(eq.op.primitive is not call for eq in program.equations):
        return program
    return inlined(program, _called)


def _called(eq: Equation, specs: Mapping[int, Spec]) -> Program | None:
    if eq.op.primitive is not call:
        return None
    params = eq.op.params
    inner: Program = params["program"]
    return instance(inner, sizes_for(inner, [specs[v] for v in eq.variables], params["sizes"]))


def inlined(program: Program, called: Called, *, keep_lines: bool = True) -> Program:
    """Replace equations by programs, recursively.

    Args:
        program: the program.
        called: returns the program that replaces an equation.
        keep_lines: whether the new equations keep their source lines, instead of that of the replaced equation.
    """
    return _Inliner(program, called, keep_lines).run()


class _Inliner:
    def __init__(self, program: Program, called: Called, keep_lines: bool) -> None:
        self.program, self.called, self.keep_lines = program, called, keep_lines
        self.specs: dict[int, Spec] = dict(program.specs)
        self.constants: dict[int, Tensor] = dict(program.constants)
        self.known = {identity(c): v for v, c in program.constants.items()}
        self.equations: list[Equation] = []
        self.next = max(self.specs, default=-1) + 1
        self.found = False

    def run(self) -> Program:
        with Decisions(self.program.examples):
            final = self._copy(self.program, {v: v for v in self.specs}, own=True)
        if not self.found:
            return self.program
        return self.program.with_(
            constants=self.constants,
            equations=tuple(self.equations),
            output_ids=tuple([final[v] for v in self.program.output_ids]),
            specs=self.specs,
        )

    def _copy(self, program: Program, names: dict[int, int], own: bool, line: Source = None) -> dict[int, int]:
        """Append the equations of a program; `names` maps its variables to those of the new program."""
        for eq in program.equations:
            operands: tuple[Operand, ...] = tuple([names[v] if v.__class__ is int else v for v in eq.operands])
            here = Equation(eq.op, operands, eq.results, line or eq.source)
            inner = self.called(here, self.specs)
            if inner is not None and len(self.equations) + len(inner.equations) <= INLINE_MAX_EQUATIONS:
                names.update(zip(eq.results, self._inlined(inner, here), strict=True))
                continue
            if not own:
                names.update((v, self._new(program.specs[v])) for v in eq.results)
                here.results = tuple([names[v] for v in eq.results])
            self.equations.append(eq if own and operands == eq.operands else here)
        return names

    def _inlined(self, inner: Program, eq: Equation) -> list[int]:
        self.found = True
        names: dict[int, int] = {}
        for v, operand in zip(inner.input_ids, eq.operands, strict=True):
            names[v] = self._array(operand, inner.specs[v], eq) if isinstance(operand, Literal) else operand
        for v, c in inner.constants.items():
            names[v] = self._constant(c)
        after = self._copy(inner, names, own=False, line=None if self.keep_lines else eq.source)
        return [after[v] for v in inner.output_ids]

    def _constant(self, c: Tensor) -> int:
        if identity(c) not in self.known:
            self.known[identity(c)] = self._new(c.spec)
            self.constants[self.known[identity(c)]] = c
        return self.known[identity(c)]

    def _array(self, number: Literal, spec: Spec, eq: Equation) -> int:
        """A number as the array that it represents."""
        v = self._constant(Primitive.adopt(number.value, dtype=spec.dtype, device=spec.place.device))
        if spec.shape:
            spread: Op = catalog.broadcast_in_dim.op(shape=spec.shape, dims=())
            scalar, v = v, self._new(spec)
            self.equations.append(Equation(spread, (scalar,), (v,), eq.source))
        return v

    def _new(self, spec: Spec) -> int:
        v = self.next
        self.next += 1
        self.specs[v] = spec
        return v
