"""Lowering of contractions of two operands: written out, as loops, or as a call of a kernel."""

from __future__ import annotations

from typing import Final

from tenferro_runtime.lowering._calls import call
from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._reductions import reduced
from tenferro_runtime.lowering._values import Index, Lowered, count, kept
from tenferro_runtime.lowering._writer import Writer
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Literal
from tenferro_tensor.loop_ir import Affine, Value
from tenferro_tensor_core import DimLike

MOST_INLINE: Final = 512
"""Multiplications up to which a product of matrices is loops; kernels for whole products are faster beyond."""

REREAD: Final = 6
"""Cost above which elements of an operand are computed once: each is read many times."""


@rule(catalog.dot_general)
def _dot_general(step: Step) -> Lowered:
    w = step.w
    (cx, cy), (bx, by) = step.params["contract"], step.params["batch"]
    x, y = step.operands
    fx = [k for k in range(len(x.shape)) if k not in cx and k not in bx]
    fy = [k for k in range(len(y.shape)) if k not in cy and k not in by]
    over = [x.shape[k] for k in cx]
    rows, columns = count([x.shape[k] for k in fx]), count([y.shape[k] for k in fy])
    if over and not (_one(rows) or _one(columns)) and not _few(count(step.out.shape) * count(over)):
        (found,) = call(step)
        return found
    x, y = (kept(w, v) if v.cost > REREAD else v for v in (x, y))
    inner = bool(cx) and _last_is(x.shape, cx, fx) and _last_is(y.shape, cy, fy)
    dtype, nb, nx = x.dtype, len(bx), len(fx)

    def term(w: Writer, i: Index, r: Index) -> Value:
        ix, iy = [Affine()] * len(x.shape), [Affine()] * len(y.shape)
        for axes, index, of in ((bx, i[:nb], ix), (fx, i[nb : nb + nx], ix), (cx, r, ix)):
            for k, a in zip(axes, index, strict=True):
                of[k] = a
        for axes, index, of in ((by, i[:nb], iy), (fy, i[nb + nx :], iy), (cy, r, iy)):
            for k, a in zip(axes, index, strict=True):
                of[k] = a
        multiply = catalog.bitwise_and.op() if dtype.kind == "b" else catalog.mul.op()
        return w.let(multiply, dtype, x.at(w, tuple(ix)), y.at(w, tuple(iy)))

    op = catalog.bitwise_or.op() if dtype.kind == "b" else catalog.add.op()
    return reduced(w, step.out.shape, over, term, op, Literal(dtype.type(0).item(), dtype), inner=inner)


def _last_is(shape: tuple[DimLike, ...], contracted: tuple[int, ...], free: list[int]) -> bool:
    """Whether the terms of one element lie next to each other, or the operand has no other axis to go along."""
    return not free or len(shape) - 1 in contracted


def _one(n: DimLike) -> bool:
    return n.__class__ is int and n == 1


def _few(n: DimLike) -> bool:
    return isinstance(n, int) and n <= MOST_INLINE
