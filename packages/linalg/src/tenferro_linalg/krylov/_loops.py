"""Tests of convergence in programs that run as one native function: on failure the kernel runs, which raises."""

from __future__ import annotations

from typing import Any

from tenferro_linalg.loops._gaps import checked_by_kernel
from tenferro_linalg.loops._lapack import BOOL, counted, over
from tenferro_runtime.lowering import Lowered, stored
from tenferro_tensor import catalog


def converged(step: Any) -> Lowered:
    """The iterate, if the iteration has converged."""
    w = step.w
    reached = stored(w, step.operand(1))
    step.replace(1, reached)
    flags = over(
        w, reached.shape, lambda batch: counted(w, w.let(catalog.bitwise_not.op(), BOOL, reached.at(w, batch)))
    )
    checked_by_kernel(step, flags)
    return step.operand(0)
