"""Roots of unity, and the test which lengths use loops; both run once, at the start of a program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tenferro_runtime.lowering import LoopWriter, Stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Carried, Case, Literal, Switch, Value, While
from tenferro_tensor_core import DimLike, floordiv

BOOL: Final = np.dtype(np.bool_)
FLOAT64: Final = np.dtype(np.float64)

MAX_LENGTH: Final = 1 << 16
"""Maximum length of a transform in loops: a line and its roots nearly fit into the L2 cache."""

FIRST: Final = 4
"""The radix of the first pass, which divides every length that uses loops."""


@dataclass(frozen=True)
class Roots:
    """The numbers ``exp(-2 pi i k / n)`` for k from 0 to n.

    Attributes:
        cosines: real parts.
        sines: imaginary parts.
        fits: 1 where a length is transformed in loops, else 0; the roots are undefined there.
    """

    cosines: Stored
    sines: Stored
    fits: Value


def fits(n: int) -> bool:
    """Whether transforms of a length use loops."""
    if not 0 < n <= MAX_LENGTH or n % FIRST:
        return False
    for prime in (2, 3, 5):
        while n % prime == 0:
            n //= prime
    return n == 1


def roots(w: LoopWriter, length: DimLike, times: int, dtype: np.dtype[Any]) -> Roots:
    """The roots of order ``times * length`` for transforms of a length."""
    return w.once(("roots", length, times, dtype), lambda: _roots(w, length, times * length, dtype))


def _roots(w: LoopWriter, length: DimLike, order: DimLike, dtype: np.dtype[Any]) -> Roots:
    allowed = _fits(w, length)
    cosines, sines = (Stored.whole_of(w.buffer(dtype, (order + 1,))) for _ in range(2))
    found = Roots(cosines, sines, allowed)
    with w.block() as filling:
        _fill(w, found, order)
    w.statements.append(Switch(allowed, (Case(()), Case(tuple(filling)))))
    return found


def _fits(w: LoopWriter, length: DimLike) -> Value:
    """The result of `fits` as a number."""
    if isinstance(length, int):
        return Literal(int(fits(length)), INDEX)
    left = n = w.position(Affine(length))
    for prime in (2, 3, 5):
        left = _without(w, left, prime)
    whole = _divides(w, n, FIRST)
    allowed = w.both(whole, w.let(catalog.eq.op(), BOOL, left, Literal(1, INDEX)))
    short = w.let(catalog.le.op(), BOOL, n, Literal(MAX_LENGTH, INDEX))
    return w.let(catalog.convert.op(dtype=INDEX), INDEX, w.both(allowed, short))


def _divides(w: LoopWriter, value: Value, by: int) -> Value:
    rest = w.let(catalog.remainder.op(), INDEX, value, Literal(by, INDEX))
    return w.let(catalog.eq.op(), BOOL, rest, Literal(0, INDEX))


def _without(w: LoopWriter, value: Value, prime: int) -> Value:
    """A number divided by its factors of a prime, for numbers up to `MAX_LENGTH`."""
    index, inside, result = (w.reg(INDEX) for _ in range(3))
    with w.block() as test:
        condition = _divides(w, inside, prime)
    with w.block() as body:
        smaller = w.let(catalog.floor_divide.op(), INDEX, inside, Literal(prime, INDEX))
    carried = (Carried(inside, value, smaller, result),)
    most = MAX_LENGTH.bit_length()
    w.statements.append(While(tuple(test), condition, index, tuple(body), carried, most))
    return result


def _fill(w: LoopWriter, to: Roots, order: DimLike) -> None:
    """Compute an eighth of the circle, and the rest by symmetry, so that no angle exceeds ``pi / 4``."""
    quarter, eighth = floordiv(order, 4), floordiv(order, 8) + 1
    parts = [Stored.whole_of(w.buffer(FLOAT64, (eighth,))) for _ in range(2)]

    def angle(at: tuple[Affine, ...]) -> None:
        k, n = (w.let(catalog.convert.op(dtype=FLOAT64), FLOAT64, w.position(i)) for i in (at[0], Affine(order)))
        turned = w.let(catalog.mul.op(), FLOAT64, k, Literal(2.0 * math.pi, FLOAT64))
        turned = w.let(catalog.div.op(), FLOAT64, turned, n)
        for part, op in zip(parts, (catalog.cos, catalog.sin), strict=True):
            w.store(part.buffer, part.place(at), w.let(op.op(), FLOAT64, turned))

    w.nest((eighth,), angle)
    dtype = to.cosines.dtype
    with w.loop(eighth) as loop:
        k = Affine.of(loop.index)
        c, s = (w.let(catalog.convert.op(dtype=dtype), dtype, part.at(w, (k,))) for part in parts)
        for place, x, y in ((k, c, s), (-k + quarter, s, c)):
            for _ in range(4):
                minus_y = w.let(catalog.neg.op(), dtype, y)
                w.store(to.cosines.buffer, place, x)
                w.store(to.sines.buffer, place, minus_y)
                place, x, y = place + quarter, minus_y, x
