"""Steps in the checked mode: memory that a result could take over is filled with NaN instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._reuse import updated_operands
from tenferro_runtime.running.rendering._step import Step
from tenferro_tensor.checked import poison


def poisoning(program: Program, steps: Sequence[Step], victims: Mapping[int, int]) -> list[Step]:
    """The steps of a program with new memory for all results.

    An operand that an equation would update is copied first, and its memory filled with NaN before the equation runs,
    so that a loop which reads it beside its carry shows. An operand of an element-wise step is filled afterwards.

    Args:
        program: the program.
        steps: its steps.
        victims: the operand that each result would overwrite.
    """
    fresh = 1 + max(program.specs)
    found: list[Step] = []
    for step in steps:
        after: list[Step] = []
        operands = list(step.operands)
        for k, v in enumerate(step.results):
            u = victims.get(v)
            if u is None:
                continue
            if step.equation.op.primitive.elementwise:
                after.append(Step(_fill, (u,), (), False, step.equation))
            else:
                found.append(Step(_moved, (u,), (fresh,), False, step.equation))
                operands[updated_operands(step.equation)[k]] = fresh
                fresh += 1
        found += [step._replace(operands=tuple(operands)), *after]
    return found


def _fill(array: Any) -> None:
    array[...] = poison(array.dtype)


def _moved(array: Any) -> Any:
    copy = array.copy()
    _fill(array)
    return copy
