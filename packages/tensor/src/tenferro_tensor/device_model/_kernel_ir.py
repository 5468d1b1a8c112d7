"""`KernelIR`: one kernel as a small typed SSA program over an iteration space of symbolic extents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import ArgumentError, DTypeError, key_of


class Access(Enum):
    """How an operand is laid out along the innermost axis of the iteration space."""

    UNIT = "unit"
    """Contiguous elements."""
    FIXED = "fixed"
    """One element for the whole axis: a scalar, or one value per row."""
    STRIDED = "strided"
    """Any other stride, passed when the kernel is called."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An array that a kernel reads or writes: its dtype and access. Outer strides are arguments of the call."""

    dtype: np.dtype[Any]
    access: Access = Access.UNIT


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant number of a kernel."""

    value: bool | int | float | complex
    dtype: np.dtype[Any]

    def __hash__(self) -> int:
        return hash((key_of(self.value), self.dtype))

    def __eq__(self, other: object) -> bool:
        # -0.0 differs from 0.0, and NaN equals itself.
        return isinstance(other, Literal) and (key_of(self.value), self.dtype) == (key_of(other.value), other.dtype)


@dataclass(frozen=True, slots=True)
class Apply:
    """An element-wise op applied to earlier values, given by their numbers."""

    op: Op
    args: tuple[int, ...]


class Over(Enum):
    """The axes of the iteration space that a reduction removes."""

    TRAILING = "trailing"
    """The innermost one: every row becomes one element."""
    LEADING = "leading"
    """All outer ones: rows are combined element by element."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of every output of a kernel.

    Attributes:
        kind: ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, ``"argmax"`` or ``"argmin"``; for booleans ``"max"`` is any
            and ``"min"`` is all. NaN wins; of equal extremes the first.
        over: the axes to remove.
    """

    kind: str
    over: Over = Over.TRAILING

    KINDS = ("sum", "prod", "max", "min", "argmax", "argmin")

    def __post_init__(self) -> None:
        if self.kind not in self.KINDS:
            raise ArgumentError(f"there is no reduction {self.kind!r}; use one of {', '.join(self.KINDS)}")


@dataclass(frozen=True, slots=True)
class KernelIR:
    """A fused kernel: operands, one equation per line, outputs, and an optional reduction of them.

    Values are numbered: first the inputs, then the lines. Every line is element-wise; strides implement broadcasting.
    Kernels with equal descriptions are equal; sizes are not part of them.

    Attributes:
        inputs: the arrays to read.
        lines: literals and applications, in order.
        outputs: numbers of the values to write.
        writes: access of each output; unit strides by default.
        reduction: reduction of the outputs before they are written.

    Raises:
        ArgumentError: a line uses a value that is not defined before it.
        DTypeError: a primitive is not defined for the dtypes.

    >>> from tenferro_tensor.catalog.arithmetic import add, mul
    >>> f8 = Operand(np.dtype("float64"))
    >>> kernel = KernelIR((f8, f8, f8), (Apply(mul.op(), (0, 1)), Apply(add.op(), (3, 2))), (4,))
    >>> print(kernel)
    kernel(v0: float64 unit, v1: float64 unit, v2: float64 unit)
      v3: float64 = mul v0 v1
      v4: float64 = add v3 v2
      write v4: float64 unit
    """

    inputs: tuple[Operand, ...]
    lines: tuple[Literal | Apply, ...]
    outputs: tuple[int, ...]
    writes: tuple[Access, ...] = ()
    reduction: Reduction | None = None
    dtypes: tuple[np.dtype[Any], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        dtypes = [operand.dtype for operand in self.inputs]
        for line in self.lines:
            if isinstance(line, Literal):
                dtypes.append(line.dtype)
                continue
            self._require_defined(line.args, len(dtypes), line.op.primitive.name)
            if not line.op.primitive.elementwise:
                raise ArgumentError(
                    f"a kernel's lines are element-wise, and {line.op.primitive.name} is not; end the kernel before it",
                    primitive=line.op.primitive.name,
                )
            out = line.op.infer(*(Spec((), dtypes[i]) for i in line.args))
            assert isinstance(out, Spec)
            dtypes.append(out.dtype)
        self._require_defined(self.outputs, len(dtypes), "the list of outputs")
        if self.writes and len(self.writes) != len(self.outputs):
            raise ArgumentError(f"a kernel with {len(self.outputs)} outputs got {len(self.writes)} accesses for them")
        if not self.outputs:
            raise ArgumentError("a kernel writes nothing; name at least one output")
        object.__setattr__(self, "writes", self.writes or (Access.UNIT,) * len(self.outputs))
        object.__setattr__(self, "dtypes", tuple(dtypes))
        for i in self.outputs if self.reduction is not None else ():
            self._require_reducible(dtypes[i])

    @staticmethod
    def _require_defined(numbers: tuple[int, ...], known: int, where: str) -> None:
        for number in numbers:
            if not 0 <= number < known:
                raise ArgumentError(f"{where} names value {number}, but values 0 to {known - 1} are defined there")

    def _require_reducible(self, dtype: np.dtype[Any]) -> None:
        assert self.reduction is not None
        ordered = self.reduction.kind not in ("sum", "prod")
        if dtype.kind == "c" and ordered:
            raise DTypeError(f"{self.reduction.kind} of {dtype.name} is not defined: complex numbers have no order")

    @property
    def written(self) -> tuple[Operand, ...]:
        """The arrays written."""
        located = self.reduction is not None and self.reduction.kind.startswith("arg")
        return tuple(
            Operand(np.dtype("int64") if located else self.dtypes[i], access)
            for i, access in zip(self.outputs, self.writes)
        )

    @property
    def ops(self) -> tuple[Op, ...]:
        """The ops of the lines, in order."""
        return tuple(line.op for line in self.lines if isinstance(line, Apply))

    def interpret(self, kernel: Callable[[Op, tuple[Spec, ...], Spec], Callable[..., Any]], *arrays: Any) -> list[Any]:
        """Evaluate the outputs before reduction, op by op: the reference that compiled kernels are tested against.

        Args:
            kernel: returns a callable on raw arrays for an op with operand and result specs.
            arrays: the inputs, of shapes that broadcast.

        Returns:
            The values of the outputs.
        """
        values: list[Any] = list(arrays)
        for line, dtype in zip(self.lines, self.dtypes[len(self.inputs) :]):
            if isinstance(line, Literal):
                values.append(dtype.type(line.value))
            else:
                specs = tuple(Spec(np.shape(values[i]), self.dtypes[i]) for i in line.args)
                values.append(kernel(line.op, specs, Spec((0,), dtype))(*(values[i] for i in line.args)))
        return [values[i] for i in self.outputs]

    def __str__(self) -> str:
        head = ", ".join(f"v{i}: {o.dtype.name} {o.access.value}" for i, o in enumerate(self.inputs))
        text = [f"kernel({head})"]
        for number, line in enumerate(self.lines, len(self.inputs)):
            right = (
                repr(line.value) if isinstance(line, Literal) else f"{line.op!r} {' '.join(f'v{i}' for i in line.args)}"
            )
            text.append(f"  v{number}: {self.dtypes[number].name} = {right}")
        verb = "write" if self.reduction is None else f"write {self.reduction.kind} over {self.reduction.over.value} of"
        for i, operand in zip(self.outputs, self.written):
            text.append(f"  {verb} v{i}: {operand.dtype.name} {operand.access.value}")
        return "\n".join(text)
