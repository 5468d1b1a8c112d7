"""Writes the fused program: unchanged equations, and one equation `fused` for each region."""

from __future__ import annotations

from tenferro_runtime.fusion._primitive import fused
from tenferro_runtime.fusion._region import ORDERED
from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_tensor import Spec, Tensor, catalog


class FusionWriter:
    """Collects the equations of the fused program.

    Args:
        program: the original program.
        ordered: whether results of regions have the memory layout of single operations.
    """

    def __init__(self, program: Program, ordered: bool) -> None:
        self.before, self.ordered = program, ordered
        self.equations: list[Equation] = []
        self.changed = False
        # Broadcasts that a kernel implements by strides: the operand, and its axes in the result.
        self.repeated: dict[int, tuple[int, tuple[int, ...]]] = {}
        for eq in program.equations:
            if eq.op.primitive is catalog.broadcast_in_dim:
                dims = eq.op.params["dims"]
                if list(dims) == sorted(dims):
                    self.repeated[eq.results[0]] = eq.variables[0], dims

    def single(self, i: int) -> None:
        """Copy equation `i`."""
        self.equations.append(self.before.equations[i])

    def region(self, members: list[int], outputs: list[int]) -> None:
        """Write the equations `members` as one step with the given outputs."""
        self.changed = True
        equations = [self.before.equations[i] for i in members]
        region = _Region(self.before, self.repeated)
        for eq in equations:
            region.add(eq)
        inner = region.program(outputs)
        inner.memo[ORDERED] = self.ordered
        op = fused.op(program=inner)
        self.equations.append(Equation(op, tuple(region.sources), tuple(outputs), equations[-1].source))

    def program(self) -> Program:
        """The fused program; the original one if nothing was fused."""
        if not self.changed:
            return self.before
        return self.before.with_(equations=tuple(self.equations))


class _Region:
    """The inner program of one region, with variables numbered from 0."""

    def __init__(self, outer: Program, repeated: dict[int, tuple[int, tuple[int, ...]]]) -> None:
        self.outer, self.repeated = outer, repeated
        self.sources: list[int] = []
        self.inputs: list[int] = []
        self.constants: dict[int, Tensor] = {}
        self.equations: list[Equation] = []
        self.specs: dict[int, Spec] = {}
        self.names: dict[int, int] = {}
        self.made: set[int] = set()

    def add(self, eq: Equation) -> None:
        thin = self._thin(eq)
        operands: tuple[Operand, ...] = tuple(
            [v if isinstance(v, Literal) else self._operand(v, v in thin) for v in eq.operands]
        )
        (result,) = eq.results
        self.made.add(result)
        self.equations.append(Equation(eq.op, operands, (self._name(result, self.outer.specs[result]),)))

    def _thin(self, eq: Equation) -> set[int]:
        """Operands that strides can broadcast, because the operands together have every axis."""
        thin = {v for v in eq.variables if v in self.repeated and v not in self.made}
        if thin and all(v in thin for v in eq.variables):
            covered = {d for v in thin for d in self.repeated[v][1]}
            if len(covered) < self.outer.specs[eq.results[0]].ndim:
                thin.remove(min(thin))
        return thin

    def _operand(self, v: int, thin: bool) -> int:
        known = self.names.get(v)
        if known is not None:
            return known
        if not thin:
            return self._input(v, v)
        source, dims = self.repeated[v]
        constant = self.outer.constants.get(source)
        if constant is not None and constant.spec.ndim == 0:
            start = self._fresh(constant.spec)
            self.constants[start] = constant
        else:
            start = self._input(source, None)
        spec = self.outer.specs[v]
        op = catalog.broadcast_in_dim.op(shape=spec.shape, dims=dims)
        self.equations.append(Equation(op, (start,), (self._name(v, spec),)))
        return self.names[v]

    def _input(self, source: int, v: int | None) -> int:
        name = self._fresh(self.outer.specs[source])
        self.sources.append(source)
        self.inputs.append(name)
        if v is not None:
            self.names[v] = name
        return name

    def _name(self, v: int, spec: Spec) -> int:
        self.names[v] = self._fresh(spec)
        return self.names[v]

    def _fresh(self, spec: Spec) -> int:
        self.specs[len(self.specs)] = spec
        return len(self.specs) - 1

    def program(self, outputs: list[int]) -> Program:
        outs = tuple([self.names[v] for v in outputs])
        return Program(tuple(self.inputs), self.constants, tuple(self.equations), outs, self.specs)
