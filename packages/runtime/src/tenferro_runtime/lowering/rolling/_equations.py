"""`BodyWriter`: the equations of the body of a loop, and the outside values that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._program import Equation, Literal, Operand
from tenferro_runtime.lowering.rolling._row_values import Surroundings
from tenferro_tensor import HOST, Spec, Tensor, catalog, tensor
from tenferro_tensor_core import int64

_INDEX: Final = Spec((), int64, HOST)


class BodyWriter:
    """The body of a loop while it is written.

    Attributes:
        around: the program around the loop.
        specs: spec of each variable of the body.
        constants: its constants.
        equations: its equations.
        fixed: its variables for invariant values, by their variables outside.
        slices: the values of all iterations that the loop iterates over, each with its variable in the body.
    """

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.specs: dict[int, Spec] = {}
        self.constants: dict[int, Tensor] = {}
        self.equations: list[Equation] = []
        self.fixed: dict[int, int] = {}
        self.slices: list[tuple[Any, int]] = []
        self._sliced: dict[Any, int] = {}
        self._index: int | None = None
        self._numbers: dict[int, int] = {}

    def fresh(self, spec: Spec) -> int:
        """A new variable of the body."""
        v = len(self.specs)
        self.specs[v] = spec
        return v

    def emit(self, op: Any, operands: Sequence[Operand], spec: Spec, source: Any) -> int:
        """A new equation of the body."""
        v = self.fresh(spec)
        self.equations.append(Equation(op, tuple(operands), (v,), source))
        return v

    def outer(self, v: int) -> int:
        """The variable of an invariant value in the body."""
        around = self.around
        v = around.stands_for.get(v, v)
        known = self.fixed.get(v)
        if known is None:
            known = self.fixed[v] = self.fresh(around.specs[v])
            if v in around.constants:
                self.constants[known] = around.constants[v]
        return known

    def over(self, values: Any, spec: Spec) -> int:
        """The variable of a per-iteration slice: of an outside array, or of values to be stacked into one."""
        key = values.tobytes() if isinstance(values, np.ndarray) else tuple(values)
        known = self._sliced.get((spec, key))
        if known is None:
            known = self._sliced[spec, key] = self.fresh(spec)
            self.slices.append((values, known))
        return known

    def number(self, n: int) -> int:
        """An integer constant, as an index."""
        known = self._numbers.get(n)
        if known is None:
            known = self._numbers[n] = self.fresh(_INDEX)
            self.constants[known] = tensor(n)
        return known

    def position(self, values: Sequence[int], source: Any) -> int:
        """An index with one value for each group."""
        step = values[1] - values[0]
        if any(b - a != step for a, b in pairwise(values)):
            return self.over(np.array(values, dtype=np.int64), _INDEX)
        if not step:
            return self.number(values[0])
        if self._index is None:
            self._index = self.over(np.arange(len(values), dtype=np.int64), _INDEX)
        at = self._index
        if step != 1:
            at = self.emit(catalog.mul.op(), (at, Literal(step)), _INDEX, source)
        return at if not values[0] else self.emit(catalog.add.op(), (at, Literal(values[0])), _INDEX, source)
