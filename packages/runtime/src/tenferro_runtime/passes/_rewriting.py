"""Local rewriting: one pass over a program in which rules replace equations by equivalent ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tenferro_runtime.ir._program import Equation, Literal, Operand, Program
from tenferro_tensor import HOST, SCALARS, Op, Primitive, Spec, Tensor, catalog

UNIFORM_SCAN_MAX_BYTES: Final = 4096
"""Largest constant, in bytes, that is searched for being one repeated number."""

_SPREAD: Final = frozenset({catalog.broadcast_in_dim, catalog.reshape, catalog.transpose})


class Rewriting:
    """A program while rules rewrite it; rules inspect the equations behind operands, and emit equations.

    Attributes:
        specs: spec of each variable, new ones included.
    """

    def __init__(self, program: Program, rules: Rules) -> None:
        self.program, self.rules = program, rules
        self.specs: dict[int, Spec] = dict(program.specs)
        self.equations: list[Equation] = []
        self._made: dict[int, Equation] = {}
        self._numbers: dict[int, Any] = {}
        self._stands_for: dict[int, int] = {}
        self._uses: dict[int, int] | None = None
        self._constants: dict[int, Tensor] = {}
        self._next = max(self.specs, default=-1) + 1

    def maker(self, v: Operand, primitive: Primitive) -> Equation | None:
        """The equation that defines a variable, if it applies the given primitive."""
        eq = self._made.get(v) if v.__class__ is int else None
        return eq if eq is not None and eq.op.primitive is primitive else None

    def made_by(self, v: Operand) -> Equation | None:
        """The equation that defines a variable."""
        return self._made.get(v) if v.__class__ is int else None

    def used_once(self, v: int) -> bool:
        """Whether the original program reads a variable exactly once."""
        return self.uses(v) == 1

    def uses(self, v: int) -> int:
        """How often the original program reads a variable; 1 for new variables."""
        if self._uses is None:
            self._uses, now = {}, self._stands_for
            for eq in self.program.equations:
                for u in eq.operands:
                    if u.__class__ is int:
                        u = now.get(u, u)
                        self._uses[u] = self._uses.get(u, 0) + 1
            for u in self.program.output_ids:
                u = now.get(u, u)
                self._uses[u] = self._uses.get(u, 0) + 1
        return self._uses.get(v, 1)

    def number(self, v: Operand) -> Any:
        """The number that all elements of an operand equal; ``None`` if they differ or are unknown."""
        if isinstance(v, Literal):
            return v.value
        if v in self._numbers:
            return self._numbers[v]
        constant = self.program.constants.get(v)
        eq = self._made.get(v)
        found = None
        if constant is not None:
            found = uniform(constant)
        elif eq is not None and eq.op.primitive in _SPREAD:
            found = self.number(eq.operands[0])
        self._numbers[v] = found
        return found

    def emit(self, op: Op, operands: Sequence[Operand], spec: Spec, source: Any) -> int:
        """Emit an equation with one result; rules apply to it as well."""
        v = self._next
        self._next += 1
        self.specs[v] = spec
        return self._take(Equation(op, tuple(operands), (v,), source))

    def constant(self, value: Tensor) -> int:
        """Add a constant."""
        v = self._next
        self._next += 1
        self.specs[v], self._constants[v] = value.spec, value
        return v

    def _take(self, eq: Equation) -> int:
        for rule in self.rules.get(eq.op.primitive, ()):
            found = rule(self, eq)
            if found is not None:
                return found
        self.equations.append(eq)
        self._made[eq.results[0]] = eq
        return eq.results[0]

    def run(self) -> Program:
        """The rewritten program; the same object if no rule applied."""
        program, rules = self.program, self.rules
        stands_for = self._stands_for
        get = stands_for.get
        for eq in program.equations:
            if stands_for:
                operands: tuple[Operand, ...] = tuple([get(v, v) if v.__class__ is int else v for v in eq.operands])
                if operands != eq.operands:
                    eq = Equation(eq.op, operands, eq.results, eq.source)
            if eq.op.primitive in rules:
                v = self._take(eq)
                if v != eq.results[0]:
                    stands_for[eq.results[0]] = v
                    if self._uses is not None:
                        self._uses[v] = self._uses.get(v, 0) + self._uses.get(eq.results[0], 0)
            else:
                self.equations.append(eq)
                if len(eq.results) == 1:
                    self._made[eq.results[0]] = eq
        if not stands_for:
            return program
        return program.with_(
            equations=tuple(self.equations),
            output_ids=tuple([get(v, v) for v in program.output_ids]),
            specs=self.specs,
            constants={**program.constants, **self._constants},
        )


Rule = Callable[[Rewriting, Equation], int | None]
"""Returns the variable that replaces the equation's only result, or ``None`` to keep the equation."""

Rules = Mapping[Primitive, Sequence[Rule]]


def uniform(c: Tensor) -> Any:
    """The Python number that all elements of a constant equal."""
    if c.spec.place is not HOST or c.spec.size == 0:
        return None
    if c.spec.ndim and not any(c._data.strides):  # one element, repeated
        value = c._data.flat[0].item()
        return value if value.__class__ in SCALARS else None
    if c._data.nbytes > UNIFORM_SCAN_MAX_BYTES:
        return None
    raw = c._data.tobytes()
    if raw != raw[: c.spec.dtype.itemsize] * (len(raw) // c.spec.dtype.itemsize):
        return None
    value = c._data.flat[0].item() if c.spec.ndim else c._data.item()
    return value if value.__class__ in SCALARS else None
