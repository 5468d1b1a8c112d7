"""`Replay`: a program prepared for many runs on values of any level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenferro_runtime.ir._program import Literal, Program
from tenferro_tensor import Op


class Replay:
    """The ops of a program over numbered values: inputs, constants, numbers, then the results of each.

    Apart from `interpret` for speed: it looks nothing up by variable, and attributes no source lines.

    Args:
        program: the program, whose sizes stay as they are.
        arguments: for each input of the program, the index among the values; by default, these are the inputs.
        count: number of values, if not all are inputs.
    """

    __slots__ = ("calls", "constants", "results")

    def __init__(self, program: Program, arguments: Sequence[int] | None = None, count: int | None = None) -> None:
        ids, constants = program.input_ids, program.constants
        at: dict[Any, int] = dict(zip(ids, range(len(ids)) if arguments is None else arguments, strict=True))
        last = len(ids) if count is None else count
        at.update(zip(constants, range(last, last + len(constants))))
        literals = [v for eq in program.equations for v in eq.operands if isinstance(v, Literal)]
        last += len(constants)
        numbers = iter(range(last, last + len(literals)))
        self.constants: tuple[Any, ...] = (*constants.values(), *[v.value for v in literals])
        last += len(literals)
        calls: list[tuple[Op, tuple[int, ...]]] = []
        for eq in program.equations:
            calls.append((eq.op, tuple([next(numbers) if isinstance(v, Literal) else at[v] for v in eq.operands])))
            at.update(zip(eq.results, range(last, last + len(eq.results)), strict=True))
            last += len(eq.results)
        self.calls: tuple[tuple[Op, tuple[int, ...]], ...] = tuple(calls)
        self.results: tuple[int, ...] = tuple([at[v] for v in program.output_ids])

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        registers = self.registers(values)
        return tuple([registers[i] for i in self.results])

    def registers(self, values: Sequence[Any]) -> list[Any]:
        """All values of a run, of which `results` numbers the outputs.

        Args:
            values: the values that it takes.

        Returns:
            The values.
        """
        registers = [*values, *self.constants]
        for op, operands in self.calls:
            out = op(*[registers[i] for i in operands])
            if out.__class__ is tuple:
                registers += out
            else:
                registers.append(out)
        return registers
