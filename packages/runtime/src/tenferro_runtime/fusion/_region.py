"""Reads a fused program as a `Region`: the kernel, and the axes of its inputs."""

from __future__ import annotations

from typing import Any, Final

from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Operand, Program, ProgramError
from tenferro_runtime.ir._program import Literal as Scalar
from tenferro_tensor import Primitive, Spec, catalog
from tenferro_tensor.device_model import Apply, KernelIR, Literal, Reduction, Region
from tenferro_tensor.device_model import Operand as Port

REDUCTIONS: Final[dict[Primitive, str]] = {
    catalog.reduce_sum: "sum",
    catalog.reduce_prod: "prod",
    catalog.reduce_max: "max",
    catalog.reduce_min: "min",
    catalog.reduce_all: "min",
    catalog.reduce_any: "max",
}
"""Primitives that may end a region, and their names in a kernel."""


ORDERED: Final = "ordered"
"""Key of a region's memo: whether its results have the memory layout of the single steps."""


def region_of(program: Program) -> Region:
    """The region of a fused program; cached with the program.

    Raises:
        ProgramError: the program does not consist of broadcasts of inputs, element-wise steps and equal reductions.
    """
    found: Region | None = program.memo.get("region")
    if found is None:
        found = program.memo["region"] = _Reader(program).region()
    return found


class _Reader:
    """Numbers the values of a kernel: inputs, then literals and applications in order."""

    def __init__(self, program: Program) -> None:
        self.program, self.specs = program, program.specs
        self.numbers: dict[int, int] = {v: i for i, v in enumerate(program.input_ids)}
        self.axes: list[Any] = [None] * len(program.input_ids)
        self.lines: list[Literal | Apply] = []
        self.space: tuple[Any, ...] | None = None
        self.reduced: dict[int, tuple[str, tuple[int, ...], int]] = {}

    def region(self) -> Region:
        program = self.program
        for eq in program.equations:
            if eq.op.primitive is catalog.broadcast_in_dim:
                self._broadcast(eq)
            elif eq.op.primitive in REDUCTIONS:
                (v,) = eq.variables
                self.reduced[eq.results[0]] = REDUCTIONS[eq.op.primitive], eq.op.params["axes"], self._number(v)
            elif eq.op.primitive.elementwise and len(eq.results) == 1:
                self._apply(eq)
            else:
                self._refuse(f"{eq.op.primitive.name} cannot be fused")
        if self.space is None:
            self._refuse("it has no element-wise step")
        ends = {self.reduced[v][:2] if v in self.reduced else None for v in program.output_ids}
        if len(ends) != 1:
            self._refuse("its outputs are reduced in several ways")
        end = ends.pop()
        numbers = [self.reduced[v][2] if v in self.reduced else self._number(v) for v in program.output_ids]
        inputs = tuple([Port(self.specs[v].dtype) for v in program.input_ids])
        reduction = None if end is None else Reduction(end[0])
        kernel = KernelIR(inputs, tuple(self.lines), tuple(numbers), reduction=reduction)
        reduced = () if end is None else tuple(sorted(end[1]))
        ordered = program.memo.get(ORDERED, False)
        return Region(kernel, len(self.space or ()), tuple(self.axes), reduced, ordered)

    def _broadcast(self, eq: Equation) -> None:
        (v,), (result,) = eq.variables, eq.results
        constant = self.program.constants.get(v)
        if constant is not None and constant.spec.ndim == 0:
            self._literal(result, constant._data.item(), constant.spec)
        elif self.numbers.get(v, len(self.axes)) < len(self.axes) and self.axes[self.numbers[v]] is None:
            self.axes[self.numbers[v]] = eq.op.params["dims"]
            self.numbers[result] = self.numbers[v]
        else:
            self._refuse("it broadcasts a value that is not an input, or an input twice")

    def _apply(self, eq: Equation) -> None:
        out = self.specs[eq.results[0]]
        if self.space is None:
            self.space = out.shape
        elif self.space != out.shape:
            self._refuse(f"it has steps of shapes {self.space} and {out.shape}")
        seen = tuple([v.value.__class__ if isinstance(v, Scalar) else self.specs[v] for v in eq.operands])
        args = []
        for v, spec in zip(eq.operands, operand_specs(eq.op, seen), strict=True):
            args.append(self._literal(None, v.value, spec) if isinstance(v, Scalar) else self._number(v))
        self.numbers[eq.results[0]] = self._line(Apply(eq.op, tuple(args)))

    def _number(self, v: Operand) -> int:
        number = self.numbers.get(v) if v.__class__ is int else None
        if number is None:
            self._refuse(f"{self.program.label(v)} is used before a step defines it")
        assert number is not None
        if number < len(self.axes) and self.axes[number] is None:
            self.axes[number] = tuple(range(self.specs[v].ndim))  # type: ignore[index]
        return number

    def _literal(self, v: int | None, value: complex, spec: Spec) -> int:
        # As in NumPy: 2 in an operation with float64 numbers is 2.0.
        number = self._line(Literal(spec.dtype.type(value).item(), spec.dtype))
        if v is not None:
            self.numbers[v] = number
        return number

    def _line(self, line: Literal | Apply) -> int:
        self.lines.append(line)
        return len(self.axes) + len(self.lines) - 1

    def _refuse(self, why: str) -> None:
        raise ProgramError(f"{self.program!r} is not a region: {why}")
