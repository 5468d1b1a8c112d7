"""`LineTransforms`: transforms of lines, as passes of short transforms (Stockham's algorithm).

After some passes, transforms of length `s` are done and ``n / s`` points are left: element ``p * s + q`` is point `p`
of the transform with number `q`. A pass of radix r reads the points ``p + j * n / (r * s)`` and writes r shorter
transforms, ``r * p + k``, multiplied by roots of unity, so that the coefficients end in order. In all passes but the
first, `s` is divisible by four, and the pass works on four neighbours at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_fft.loops._butterflies import Pair, Pairs
from tenferro_fft.loops._roots import BOOL, FIRST, Roots
from tenferro_runtime.lowering import LoopWriter, Stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Carried, Case, Literal, Order, Reg, Switch, Value, While
from tenferro_tensor_core import DimLike, floordiv

VECTOR_WIDTH: Final = 4
"""Number of neighbours that a pass works on at once."""

RADICES: Final = (4, 2, 3, 5)
"""Radices of the passes after the first, in the order in which they are tried."""


ZERO: Final = Affine()


class LineTransforms:
    """The transforms of lines, with their memory.

    Args:
        w: writer of the loop nests.
        length: length of a line.
        roots: roots of unity.
        times: the roots have order ``times * length``.
        lines: number of lines transformed at once: 1, or a multiple of `VECTOR_WIDTH` of lines with adjacent
            points.

    Attributes:
        parts: real and imaginary parts of the last transformed lines, one row per coefficient.
    """

    def __init__(self, w: LoopWriter, length: DimLike, roots: Roots, times: int = 1, lines: int = 1) -> None:
        self.w, self.length, self.roots, self.times, self.lines = w, length, roots, times, lines
        self.dtype: np.dtype[Any] = roots.cosines.dtype
        self.pairs = Pairs(w, self.dtype)
        shape = (length, lines)
        self.parts, self._spare = ([Stored.whole_of(w.buffer(self.dtype, shape)) for _ in range(2)] for _ in "ab")

    def root(self, number: Affine) -> Pair:
        """``exp(-2 pi i number / length)``."""
        at = number * self.times
        return self.roots.cosines.at(self.w, (at,)), self.roots.sines.at(self.w, (at,))

    def at(self, k: Affine, line: Affine = ZERO) -> Pair:
        """A coefficient."""
        re, im = (part.at(self.w, (k, line)) for part in self.parts)
        return re, im

    def transform(self, point: Callable[[Affine, Affine], Pair]) -> None:
        """Transform lines; ``point(j, line)`` returns element j of a line."""
        w, first = self.w, FIRST if self.lines == 1 else 1
        stretch = floordiv(self.length, first)

        def begin(at: tuple[Affine, ...]) -> None:
            found = self.pairs.transform([point(at[0] + j * stretch, at[1]) for j in range(first)])
            for k, x in enumerate(found):
                place = at[0] * (first * self.lines) + k * self.lines + at[1]
                _store(w, self.parts, place, self.pairs.mul(x, self.root(at[0] * k)) if k else x)

        w.nest((stretch, self.lines), begin)
        left, done, index = (w.reg(INDEX) for _ in range(3))
        with w.block() as test:
            more = w.let(catalog.ne.op(), BOOL, left, Literal(1, INDEX))
        with w.block() as body:
            following = self._pass(left, done)
        begins = (w.position(Affine(stretch)), Literal(first * self.lines, INDEX))
        results = [w.reg(INDEX) for _ in range(2)]
        carries = tuple(map(Carried, (left, done), begins, following, results))
        swaps = tuple([(x.buffer, y.buffer) for x, y in zip(self.parts, self._spare, strict=True)])
        w.statements.append(While(tuple(test), more, index, tuple(body), carries, None, swaps))
        w.written(*[buffer for pair in swaps for buffer in pair])

    def _pass(self, left: Reg, done: Reg) -> list[Value]:
        """One pass of the next radix: the remaining length, and the length that is done."""
        w, cases = self.w, []
        for radix in RADICES:
            with w.block() as body:
                self._of_radix(radix, done)
                by = Literal(radix, INDEX)
                shorter = w.let(catalog.floor_divide.op(), INDEX, left, by)
                longer = w.let(catalog.mul.op(), INDEX, done, by)
            cases.append(Case(tuple(body), (shorter, longer)))
        number: Value = Literal(len(RADICES) - 1, INDEX)
        for k in reversed(range(len(RADICES) - 1)):
            rest = w.let(catalog.remainder.op(), INDEX, left, Literal(RADICES[k], INDEX))
            divides = w.let(catalog.eq.op(), BOOL, rest, Literal(0, INDEX))
            number = w.let(catalog.select.op(), INDEX, divides, Literal(k, INDEX), number)
        results = [w.reg(INDEX) for _ in range(2)]
        w.statements.append(Switch(number, tuple(cases), tuple(results)))
        return list(results)

    def _of_radix(self, radix: int, done: Reg) -> None:
        """A pass from `parts` to the spare memory; the outer loop of one step makes it a separate nest."""
        w, zero = self.w, Literal(0, INDEX)
        size = self.length * self.lines
        groups, stretch = floordiv(size, radix * VECTOR_WIDTH), floordiv(size, radix)
        # In units of VECTOR_WIDTH, so that neighbours provably never alias. The limits hold without being enforced, but
        # with them the positions are provably inside the memory.
        s, turn = (
            w.index(w.let(catalog.floor_divide.op(), INDEX, done, Literal(by, INDEX)))
            for by in (VECTOR_WIDTH, self.lines)
        )
        s = w.clamped(s, groups)
        rest = w.position(-s + groups)
        with w.loop(1, order=Order.ANY), w.loop(groups, [zero, zero, zero]) as group:
            _, before, turned = map(Affine.of, group.inside)
            start = w.let(catalog.maximum.op(), INDEX, group.inside[1], zero)
            start = w.let(catalog.minimum.op(), INDEX, start, rest)
            first = w.index(start) * (radix - 1) + group.index
            turns = [self.root(w.clamped(turned, floordiv(self.length, radix)) * k) for k in range(1, radix)]
            with w.loop(VECTOR_WIDTH, order=Order.ANY) as lane:
                i, at = Affine.of(lane.index), Affine.of(group.index) * VECTOR_WIDTH + lane.index
                points = [self._point(at + j * stretch) for j in range(radix)]
                for k, x in enumerate(self.pairs.transform(points)):
                    value = self.pairs.mul(x, turns[k - 1]) if k else x
                    _store(w, self._spare, (first + s * k) * VECTOR_WIDTH + i, value)
            further = w.position(Affine.of(group.inside[0]) + 1)
            ends = w.let(catalog.eq.op(), BOOL, further, w.position(s))
            steps = (
                (zero, further),
                (w.position(before + s), group.inside[1]),
                (w.position(turned + turn), group.inside[2]),
            )
            group.following = tuple([w.let(catalog.select.op(), INDEX, ends, *step) for step in steps])

    def _point(self, place: Affine) -> Pair:
        re, im = (self.w.load(part.buffer, place) for part in self.parts)
        return re, im


def _store(w: LoopWriter, parts: list[Stored], at: Affine, value: Pair) -> None:
    for part, x in zip(parts, value, strict=True):
        w.store(part.buffer, at, x)
