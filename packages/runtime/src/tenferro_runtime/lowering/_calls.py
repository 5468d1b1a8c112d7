"""Lowering of ops that remain kernels on whole arrays: decompositions, large products, transforms, foreign code."""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_runtime.ir._program import Literal
from tenferro_runtime.lowering._lowering import Step
from tenferro_runtime.lowering._values import Lowered, Stored, stored
from tenferro_runtime.tracing.expanding import stays
from tenferro_tensor import Spec, has_host_kernel
from tenferro_tensor.loop_ir import Call


def call(step: Step) -> list[Lowered]:
    """Lower an op to a call of its kernel.

    Args:
        step: the equation.

    Returns:
        The results.
    """
    if any(isinstance(v, Literal) for v in step.eq.operands):
        raise step.unsupported("it has Python numbers among its operands")
    operands = []
    for k in range(len(step.eq.operands)):
        x = stored(step.w, step.operand(k))
        step.replace(k, x)
        operands.append(x)
    results = [Stored.whole_of(step.w.buffer(s.dtype, s.shape)) for s in step.outs]
    call_into(step, operands, results)
    return list[Lowered](results)


def call_into(step: Step, operands: Sequence[Stored], results: Sequence[Stored], *, recourse: bool = False) -> None:
    """Call the kernel of an op on operands in memory, and write its results to contiguous memory.

    Args:
        step: the equation.
        operands: its operands.
        results: buffers for the results.
        recourse: whether the call only runs if other statements have failed.

    Raises:
        UnsupportedError: there is no kernel on arrays in main memory.
    """
    ins = tuple([Spec(x.shape, x.dtype) for x in operands])
    if step.lowering.on_host and not has_host_kernel(step.op) and not stays(step.op, ins):
        raise step.unsupported("it has no kernel in main memory")
    views = [tuple([x.view() for x in xs]) for xs in (operands, results)]
    step.w.statements.append(Call(step.op, views[0], views[1], ins, step.eq.where, recourse))
    step.w.written(*[x.buffer for x in results])
