"""Forward transforms of up to 5 points, on pairs of real and imaginary parts in registers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenferro_runtime.lowering import LoopWriter
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import Literal, Value

Pair = tuple[Value, Value]
"""Real and imaginary part."""


class Pairs:
    """Arithmetic on pairs.

    Args:
        w: where it is written.
        dtype: of each part.
    """

    def __init__(self, w: LoopWriter, dtype: np.dtype[Any]) -> None:
        self.w, self.dtype = w, dtype

    def _let(self, op: Any, *args: Value) -> Value:
        return self.w.let(op.op(), self.dtype, *args)

    def add(self, x: Pair, y: Pair) -> Pair:
        """``x + y``."""
        return self._let(catalog.add, x[0], y[0]), self._let(catalog.add, x[1], y[1])

    def sub(self, x: Pair, y: Pair) -> Pair:
        """``x - y``."""
        return self._let(catalog.sub, x[0], y[0]), self._let(catalog.sub, x[1], y[1])

    def around(self, x: Pair, y: Pair) -> tuple[Pair, Pair]:
        """``x - i y`` and ``x + i y``."""
        above, below = self.add(x, (y[1], y[0])), self.sub(x, (y[1], y[0]))
        return (above[0], below[1]), (below[0], above[1])

    def scaled(self, x: Pair, by: float) -> Pair:
        """``by * x`` for a real number."""
        factor = Literal(by, self.dtype)
        return self._let(catalog.mul, x[0], factor), self._let(catalog.mul, x[1], factor)

    def mul(self, x: Pair, y: Pair) -> Pair:
        """``x * y``."""
        (a, b), (c, d) = x, y
        return (
            self._let(catalog.sub, self._let(catalog.mul, a, c), self._let(catalog.mul, b, d)),
            self._let(catalog.add, self._let(catalog.mul, a, d), self._let(catalog.mul, b, c)),
        )

    def transform(self, x: list[Pair]) -> list[Pair]:
        """The sums ``sum_j x[j] exp(-2 pi i j k / r)`` over r points."""
        match x:
            case [_]:
                return x
            case [a, b]:
                return [self.add(a, b), self.sub(a, b)]
            case [a, b, c]:
                return self._three(a, b, c)
            case [a, b, c, d]:
                return self._four(a, b, c, d)
        return self._five(*x)

    def _three(self, a: Pair, b: Pair, c: Pair) -> list[Pair]:
        both, apart = self.add(b, c), self.scaled(self.sub(b, c), math.sqrt(0.75))
        return [self.add(a, both), *self.around(self.sub(a, self.scaled(both, 0.5)), apart)]

    def _four(self, a: Pair, b: Pair, c: Pair, d: Pair) -> list[Pair]:
        even, odd = self.add(a, c), self.add(b, d)
        first, third = self.around(self.sub(a, c), self.sub(b, d))
        return [self.add(even, odd), first, self.sub(even, odd), third]

    def _five(self, a: Pair, b: Pair, c: Pair, d: Pair, e: Pair) -> list[Pair]:
        cosines = [math.cos(2.0 * math.pi * k / 5) for k in (1, 2)]
        sines = [math.sin(2.0 * math.pi * k / 5) for k in (1, 2)]
        outer, inner = self.add(b, e), self.add(c, d)
        outside, inside = self.sub(b, e), self.sub(c, d)

        def real(x: float, y: float) -> Pair:
            return self.add(a, self.add(self.scaled(outer, x), self.scaled(inner, y)))

        one, two = real(*cosines), real(*reversed(cosines))
        first = self.add(self.scaled(outside, sines[0]), self.scaled(inside, sines[1]))
        second = self.sub(self.scaled(outside, sines[1]), self.scaled(inside, sines[0]))
        (y1, y4), (y2, y3) = self.around(one, first), self.around(two, second)
        return [self.add(a, self.add(outer, inner)), y1, y2, y3, y4]
