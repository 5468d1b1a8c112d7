"""The specs that a renderer passes to a compiler, and a compiler to a program factory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_tensor_core import ArgumentError, ShapeError, evaluate

if TYPE_CHECKING:
    from tenferro_tensor.loop_ir import Buffer, LoopFunction

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
        identity: distinguishes the text from all others of its renderer; by default the text itself.
        kernel: the rendered function; None for source written by hand.

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
    identity: str = ""
    kernel: LoopFunction | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.identity:
            object.__setattr__(self, "identity", self.source)

    @staticmethod
    def of(
        kernel: LoopFunction, entry: str, text: str | Callable[[], str], launch: Launch = Launch(), identity: str = ""
    ) -> ProgramSpec:
        """The spec of a rendered function: its sizes are the variables, its inputs and outputs the buffers.

        Args:
            kernel: the function.
            entry: name of the function to call.
            text: its source.
            launch: work groups.
            identity: see `ProgramSpec`.

        Returns:
            The spec.
        """
        buffers, written = arguments(kernel), {b.number for b in kernel.outputs}
        return ProgramSpec(
            text,
            entry,
            tuple(map(Variable, kernel.sizes)),
            len(buffers),
            tuple([k for k, b in enumerate(buffers) if b in kernel.inputs]),
            tuple([k for k, b in enumerate(buffers) if b.number in written]),
            launch,
            identity,
            kernel,
        )

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
            ArgumentError: the number of buffers or values is wrong, or a value is not an integer; a buffer is not an
                array of its dtype.
            ShapeError: a value is out of bounds, or a buffer is not a contiguous array of its shape.
        """
        if len(buffers) != self.buffers or len(values) != len(self.variables):
            raise ArgumentError(
                f"{self.entry} takes {self.buffers} buffer(s) and {len(self.variables)} value(s) "
                f"({', '.join(v.name for v in self.variables) or 'none'}), got {len(buffers)} and {len(values)}"
            )
        for variable, value in zip(self.variables, values, strict=True):
            variable.check(value)
        if self.kernel is not None:
            self._check_arrays(self.kernel, buffers, dict(zip(self.kernel.sizes, map(int, values), strict=True)))

    def _check_arrays(self, kernel: LoopFunction, buffers: Sequence[Any], sizes: dict[str, int]) -> None:
        for number, (x, buffer) in enumerate(zip(buffers, arguments(kernel), strict=True)):
            what, shape = f"buffer {number} of {self.entry}", tuple([evaluate(n, sizes) for n in buffer.shape])
            dtype = getattr(x, "dtype", None)
            if dtype is None or dtype != buffer.dtype:  # NumPy takes None for float64
                raise ArgumentError(f"{what} is an array of {buffer.dtype}, got {dtype or type(x).__name__}")
            if x.shape != shape or not x.flags.c_contiguous:
                raise ShapeError(
                    f"{what} is a contiguous array of shape {shape} for {sizes}, got shape {x.shape} with strides "
                    f"{x.strides}; pass other sizes, or a copy",
                    buffer=number,
                )
        if not kernel.accepts(sizes):
            kernel.refuse(sizes)


def arguments(kernel: LoopFunction) -> tuple[Buffer, ...]:
    """The buffers that are passed to a function: inputs, and outputs that are not the memory of one."""
    return (*kernel.inputs, *[b for b in kernel.outputs if b not in kernel.inputs])


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
