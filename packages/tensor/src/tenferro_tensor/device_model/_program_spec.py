"""The specs that a renderer passes to a compiler, and a compiler to a program factory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenferro_tensor.device_model._kernel_ir import KernelIR, Operand
from tenferro_tensor_core import ArgumentError, ShapeError

MAX_EXTENT = 2**62
"""Default upper bound of a variable."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An integer argument of a kernel with its bounds.

    >>> Variable("n", 0, 100).check(7)
    7
    >>> Variable("n", 1, 100).check(0)
    Traceback (most recent call last):
    tenferro_tensor_core._errors.ShapeError: the kernel was compiled for n from 1 to 100, got 0; compile it for ...
    """

    name: str
    min: int = 0
    max: int = MAX_EXTENT

    def __post_init__(self) -> None:
        if not 0 <= self.min <= self.max:
            raise ArgumentError(f"variable {self.name} needs 0 <= min <= max, got {self.min} and {self.max}")

    def check(self, value: int) -> int:
        """Check a value.

        Args:
            value: the value.

        Returns:
            The value.

        Raises:
            ArgumentError: it is not an integer.
            ShapeError: it is out of bounds.
        """
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            raise ArgumentError(f"{self.name} of the kernel is an integer, got {value!r}; pass an extent")
        if not self.min <= value <= self.max:
            raise ShapeError(
                f"the kernel was compiled for {self.name} from {self.min} to {self.max}, got {value}; "
                "compile it for wider bounds",
                variable=self.name,
                value=value,
            )
        return value


@dataclass(frozen=True, slots=True)
class Launch:
    """Number and size of the work groups that an accelerator starts; one group of one item on a CPU.

    Attributes:
        grid: elements of the iteration space that one group covers, per axis; the number of groups is the extent
            divided by it, rounded up.
        block: work items of one group, per axis.
    """

    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A kernel as source code.

    Attributes:
        text: source code, or a function that writes it.
        entry: name of the function to call.
        variables: integer arguments in positional order.
        buffers: number of buffer arguments, in positional order.
        reads: numbers of the buffers that are read.
        writes: numbers of the buffers that are written.
        launch: work groups.
        operands: dtype and access of every buffer, for programs that check their arguments.
        identity: distinguishes the text from all others of its renderer; by default the text itself.
        kernel: the rendered kernel; None for source written by hand.

    >>> spec = ProgramSpec(lambda: "written now", "f", (), 0, (), (), identity="f of nothing")
    >>> spec.identity, spec.source
    ('f of nothing', 'written now')
    """

    text: str | Callable[[], str] = field(compare=False, repr=False)
    entry: str
    variables: tuple[Variable, ...]
    buffers: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    launch: Launch = Launch()
    operands: tuple[Operand, ...] = ()
    identity: str = ""
    kernel: KernelIR | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.identity:
            object.__setattr__(self, "identity", self.source)

    @property
    def source(self) -> str:
        """The source code, written on first use."""
        return self.text if isinstance(self.text, str) else self.text()

    def check(self, buffers: Sequence[Any], values: Sequence[int]) -> None:
        """Check the buffers and values of a call.

        Args:
            buffers: the buffers.
            values: values of the variables.

        Raises:
            ArgumentError: the number of buffers or values is wrong, or a value is not an integer.
            ShapeError: a value is out of bounds.
        """
        if len(buffers) != self.buffers or len(values) != len(self.variables):
            raise ArgumentError(
                f"{self.entry} takes {self.buffers} buffer(s) and {len(self.variables)} value(s) "
                f"({', '.join(v.name for v in self.variables) or 'none'}), got {len(buffers)} and {len(values)}"
            )
        for variable, value in zip(self.variables, values):
            variable.check(value)


@dataclass(frozen=True, slots=True)
class CompiledSpec:
    """A compiled kernel: its spec, the code, and the key that identifies it.

    Attributes:
        spec: the source.
        code: source for a run-time compiler, an object file, or the handle of loaded code.
        cache_key: contents, compiler, processor and flags.
    """

    spec: ProgramSpec
    code: str | bytes | int
    cache_key: str
