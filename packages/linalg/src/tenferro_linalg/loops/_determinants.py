"""Determinants from triangular factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_linalg.loops._lapack import BOOL, INT32, Batch, Lapack, matrix
from tenferro_runtime.lowering import Lowered, Step, Stored
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Literal, Value


def _determinant(la: Lapack, x: Stored, batch: Batch, first: Sequence[Value], factor: Any) -> tuple[Value, ...]:
    """Fold the diagonal of the triangular factor entry by entry, with the signs of the exchanges."""
    w, n = la.w, x.shape[-1]
    factors, pivots = la.in_columns(x, batch), la.scratch(INT32, n)
    la.call("getrf", la.number(n), la.number(n), factors.view(), la.extent(n), pivots.view(), written=(2, 4))
    with w.loop(n, first) as loop:
        i = Affine.of(loop.index)
        here = w.let(catalog.convert.op(dtype=INDEX), INDEX, pivots.at(w, (i,)))
        swapped = w.let(catalog.ne.op(), BOOL, here, w.position(i + 1))
        loop.following = factor(loop.inside, factors.at(w, (i, i)), swapped)
    return loop.results


def _product(la: Lapack) -> Any:
    """How a determinant takes the next entry of the diagonal."""
    w = la.w

    def factor(inside: Sequence[Value], entry: Value, swapped: Value) -> tuple[Value, ...]:
        turned = w.let(catalog.select.op(), la.dtype, swapped, w.let(catalog.neg.op(), la.dtype, entry), entry)
        return (w.let(catalog.mul.op(), la.dtype, inside[0], turned),)

    return factor


def determinant(step: Step) -> list[Lowered]:
    """Products of the diagonals of triangular factors."""
    la = Lapack(step)
    (x,), (out,), w = la.operands, la.results, la.w

    def one(batch: Batch) -> Value:
        (value,) = _determinant(la, x, batch, [Literal(la.dtype.type(1).item(), la.dtype)], _product(la))
        w.store(out.buffer, matrix(out, batch).offset, value)
        return Literal(0, INDEX)

    return la.lower(x.shape[:-2], one, "det")


def sign_and_logarithm(step: Step) -> list[Lowered]:
    """Signs, or phases, and logarithms of absolute values of determinants."""
    la = Lapack(step)
    (x,), (signs, logs), w = la.operands, la.results, la.w

    def one(batch: Batch) -> Value:
        def factor(inside: Sequence[Value], entry: Value, swapped: Value) -> tuple[Value, ...]:
            size = w.let(catalog.abs.op(), la.real, entry)
            phase = w.let(catalog.sign.op(), la.dtype, entry)
            turned = w.let(catalog.select.op(), la.dtype, swapped, w.let(catalog.neg.op(), la.dtype, phase), phase)
            return (
                w.let(catalog.mul.op(), la.dtype, inside[0], turned),
                w.let(catalog.add.op(), la.real, inside[1], w.let(catalog.log.op(), la.real, size)),
            )

        first = [Literal(la.dtype.type(1).item(), la.dtype), Literal(0.0, la.real)]
        sign, log = _determinant(la, x, batch, first, factor)
        w.store(signs.buffer, matrix(signs, batch).offset, sign)
        w.store(logs.buffer, matrix(logs, batch).offset, log)
        return Literal(0, INDEX)

    return la.lower(x.shape[:-2], one, "slogdet")
