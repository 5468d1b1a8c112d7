"""Norms of powers: directly if no power leaves the range of the dtype, otherwise in units of the largest element."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from tenferro_linalg.loops._lapack import BOOL, Batch, counted
from tenferro_runtime.lowering import LoopWriter, Lowered, Numbers, Step, Stored, kept
from tenferro_tensor import Op, catalog
from tenferro_tensor.loop_ir import Affine, Case, Literal, Order, Switch, Value

Term = Callable[[Value], Value]


class PowerNorms:
    """The norms of an array over some axes.

    Args:
        w: the writer of statements.
        x: the array.
        axes: the axes.
        p: the power.
        real: dtype of the norms.
    """

    def __init__(self, w: LoopWriter, x: Lowered, axes: tuple[int, ...], p: float, real: np.dtype[Any]) -> None:
        self.w, self.x, self.axes, self.p, self.real = w, x, axes, p, real

    def at(self, index: Batch) -> Value:
        """The norm of the elements at an index of the other axes."""
        if self.p != 2:
            return self._scaled(index)
        w, real = self.w, self.real
        squares = self._folded(index, self._number(0.0), catalog.add.op(), self._square)
        info = np.finfo(real)
        limits = float(info.tiny / info.eps**2), float(info.max * info.eps)
        inside = [
            w.let(op.op(), BOOL, squares, self._number(limit))
            for op, limit in zip((catalog.gt, catalog.lt), limits, strict=True)
        ]
        with w.block() as plain:
            root = w.let(catalog.sqrt.op(), real, squares)
        with w.block() as scaled:
            careful = self._scaled(index)
        result = w.reg(real)
        cases = Case(tuple(scaled), (careful,)), Case(tuple(plain), (root,))
        w.statements.append(Switch(counted(w, w.let(catalog.bitwise_and.op(), BOOL, *inside)), cases, (result,)))
        return result

    def _scaled(self, index: Batch) -> Value:
        """In units of the largest element (for negative powers, of the smallest); the norm itself if that is 0, inf or
        NaN.
        """
        w, real, p = self.w, self.real, self.p
        mul, select, one, zero = catalog.mul.op(), catalog.select.op(), self._number(1.0), self._number(0.0)
        if p > 0:
            unit = self._folded(index, zero, catalog.maximum.op(), self._size)
        else:
            unit = self._folded(index, self._number(np.inf), catalog.minimum.op(), self._size)
        above, finite = w.let(catalog.gt.op(), BOOL, unit, zero), w.let(catalog.is_finite.op(), BOOL, unit)
        fine = w.let(catalog.bitwise_and.op(), BOOL, above, finite)
        safe = w.let(select, real, fine, unit, one)

        def power(x: Value) -> Value:
            ratio = w.let(catalog.div.op(), real, w.let(select, real, fine, self._size(x), one), safe)
            return w.let(mul, real, ratio, ratio) if p == 2 else self._power(ratio, p)

        total = self._folded(index, zero, catalog.add.op(), power)
        root = w.let(catalog.sqrt.op(), real, total) if p == 2 else self._power(total, 1 / p)
        found = w.let(select, real, fine, w.let(mul, real, safe, root), unit)
        if p > 0:
            return found
        terms = w.let(catalog.eq.op(), BOOL, total, zero)  # no elements; otherwise at least one power is 1
        return w.let(select, real, terms, zero, found)

    def _power(self, x: Value, p: float) -> Value:
        return self.w.let(catalog.pow.op(), self.real, x, self._number(p))

    def _number(self, value: float) -> Literal:
        return Literal(self.real.type(value).item(), self.real)

    def _size(self, x: Value) -> Value:
        return self.w.let(catalog.abs.op(), self.real, x)

    def _square(self, x: Value) -> Value:
        w, real, mul = self.w, self.real, catalog.mul.op()
        if x.dtype == real:
            return w.let(mul, real, x, x)
        parts = [w.let(op.op(), real, x) for op in (catalog.real, catalog.imag)]
        return w.let(catalog.add.op(), real, *[w.let(mul, real, v, v) for v in parts])

    def _folded(self, index: Batch, first: Value, op: Op, term: Term) -> Value:
        """Combine the terms of all elements."""
        w, shape = self.w, self.x.shape
        others = [k for k in range(len(shape)) if k not in self.axes]

        def element(at: dict[int, Affine]) -> Value:
            whole = dict(zip(others, index, strict=True)) | at
            return term(self.x.at(w, tuple([whole[k] for k in range(len(shape))])))

        def level(axes: list[int], at: dict[int, Affine], total: Value) -> Value:
            if not axes:
                return w.let(op, self.real, total, element(at))
            with w.loop(shape[axes[0]], [total], Order.GROUPED) as loop:
                inner = level(axes[1:], at | {axes[0]: Affine.of(loop.index)}, loop.inside[0])
                loop.following = (inner,)
            return loop.results[0]

        axes = sorted(self.axes)
        if not isinstance(self.x, Numbers):
            return level(axes, {}, first)
        total = first
        for place in product(*[range(int(shape[k])) for k in axes]):  # type: ignore[arg-type]
            total = w.let(op, self.real, total, element(dict(zip(axes, map(Affine, place), strict=True))))
        return total


def power_norm(step: Step) -> Lowered:
    """``(sum |x|^p)^(1/p)`` over some axes."""
    w, x = step.w, kept(step.w, step.operand(0))
    step.replace(0, x)
    norms = PowerNorms(w, x, step.params["axes"], step.params["p"], step.out.dtype)
    if not step.out.shape:
        return Numbers((), step.out.dtype, [norms.at(())])
    out = Stored.whole_of(w.buffer(step.out.dtype, step.out.shape))
    w.nest(out.shape, lambda i: w.store(out.buffer, out.place(i), norms.at(i)))
    return out
