"""The tasks of a plan: calls of kernels on devices, and transfers between memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tenferro_runtime.ir._call import name_of
from tenferro_runtime.ir._program import Equation, Operand
from tenferro_tensor import ComputeDevice, MemorySpace, Spec


class Task(NamedTuple):
    """A call of a kernel, or a transfer.

    Attributes:
        run: the kernel, on raw arrays; ``None`` for a transfer.
        operands: variables and literals; for a transfer, the variable that moves.
        results: variables.
        many: whether the kernel returns a tuple.
        device: where the kernel runs; for a transfer, where the result is used.
        equation: the equation that it comes from, if any.
        views: whether a result may be a view of an operand, or the operand itself.
    """

    run: Callable[..., Any] | None
    operands: tuple[Operand, ...]
    results: tuple[int, ...]
    many: bool
    device: ComputeDevice
    equation: Equation | None = None
    views: bool = False

    @property
    def reads(self) -> tuple[int, ...]:
        """The operands that are variables."""
        return tuple([v for v in self.operands if v.__class__ is int])

    @property
    def title(self) -> str:
        """Name of the kernel or transfer."""
        return "task" if self.equation is None else name_of(self.equation)


class Work(NamedTuple):
    """Tasks in a topological order, with their inputs, constants and outputs.

    Attributes:
        inputs: variables of the inputs.
        constants: raw arrays by variable.
        tasks: the tasks.
        outputs: variables of the outputs; some may be inputs or constants.
        specs: spec of each variable, whose place names its memory.
    """

    inputs: tuple[int, ...]
    constants: Mapping[int, Any]
    tasks: tuple[Task, ...]
    outputs: tuple[int, ...]
    specs: Mapping[int, Spec]

    def space(self, v: int) -> MemorySpace:
        """The memory of a variable."""
        return self.specs[v].place.memory_space
