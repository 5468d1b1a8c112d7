"""`Replay`: a program prepared for many runs on values of any level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_runtime.ir._program import Literal, Program


class Replay:
    """The ops of a program over numbered values: inputs, constants, numbers, then the results of each.

    Apart from `interpret` for speed: it looks nothing up by variable, and attributes no source lines.

    Args:
        program: the program, whose sizes stay as they are.
    """

    __slots__ = ("calls", "constants", "results")

    def __init__(self, program: Program) -> None:
        numbers = [v.value for eq in program.equations for v in eq.operands if isinstance(v, Literal)]
        self.constants = (*program.constants.values(), *numbers)
        at: dict[Any, int] = {v: i for i, v in enumerate((*program.input_ids, *program.constants))}
        literals, last = iter(range(len(at), len(at) + len(numbers))), len(at) + len(numbers)
        calls = []
        for eq in program.equations:
            calls.append((eq.op, tuple([next(literals) if isinstance(v, Literal) else at[v] for v in eq.operands])))
            at.update(zip(eq.results, range(last, last + len(eq.results)), strict=True))
            last += len(eq.results)
        self.calls = tuple(calls)
        self.results = tuple([at[v] for v in program.output_ids])

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        registers = [*values, *self.constants]
        for op, operands in self.calls:
            out = op(*[registers[i] for i in operands])
            if out.__class__ is tuple:
                registers += out
            else:
                registers.append(out)
        return [registers[i] for i in self.results]
