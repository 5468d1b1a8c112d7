"""Lowering of element-wise primitives, `iota` and sizes to formulas of single numbers."""

from __future__ import annotations

from typing import Final

from tenferro_runtime.ir._program import Literal
from tenferro_runtime.lowering._lowering import Step, rule
from tenferro_runtime.lowering._values import Formula, Index, Lowered, Numbers
from tenferro_runtime.lowering._writer import LoopWriter
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Value
from tenferro_tensor_core import is_real_floating

SLOW: Final = 20
"""Work of an element from which a function call or its like is meant, which must not be computed again."""

COST_TO_INTEGER: Final = 12
"""Cost of converting a floating-point number to an integer, with bounds checks: slow in scalar loops."""


def elementwise(step: Step) -> Lowered:
    """A formula that applies the op to the elements at an index."""
    p, op, dtype = step.op.primitive, step.op, step.out.dtype
    operands = step.operands
    scalars = [isinstance(v, Literal) for v in step.eq.operands]
    cost = p.work
    if p is catalog.convert and dtype.kind in "iu" and is_real_floating(operands[0].dtype):
        cost = COST_TO_INTEGER
    if p is catalog.pow and isinstance(step.eq.operands[1], Literal) and step.eq.operands[1].value == 2:
        operands, scalars, op, cost = [operands[0]] * 2, [scalars[0]] * 2, catalog.mul.op(), 1
    if p in (catalog.stop_gradient, catalog.real, catalog.conj) and dtype == operands[0].dtype and dtype.kind != "c":
        return operands[0]

    def at(w: LoopWriter, index: Index) -> Value:
        return w.let(op, dtype, *[x.at(w, () if one else index) for x, one in zip(operands, scalars)])

    return Formula(step.out.shape, dtype, at, operands, cost)


@rule(catalog.iota)
def _iota(step: Step) -> Lowered:
    axis, dtype = step.params["axis"], step.out.dtype

    def at(w: LoopWriter, index: Index) -> Value:
        value = w.position(index[axis])
        return value if dtype == INDEX else w.let(catalog.convert.op(dtype=dtype), dtype, value)

    return Formula(step.out.shape, dtype, at)


@rule(catalog.dim_value)
def _dim_value(step: Step) -> Lowered:
    return Numbers((), step.out.dtype, [step.w.position(Affine(step.params["size"]))])


@rule(catalog.define_size)
def _define_size(step: Step) -> Lowered:
    raise step.unsupported("the extents of later values depend on its elements")
