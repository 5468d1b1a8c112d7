"""`ContractionIR`: a contraction of many tensors along a path, which the einsum family requests from a backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tenferro_tensor.device_model._contraction_graph import ContractionGraph, Labels
from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import cached_property


@dataclass(frozen=True)
class ContractionIR:
    """A contraction of many tensors along a path: the product of the operands, summed over all labels that the output
    lacks.

    Values are numbered: the operands first, then the result of each step. A step consumes one or two values; it sums
    the labels that neither the output nor any remaining value has. The last step produces the output; without steps,
    the only operand does.

    Attributes:
        dtype: dtype of every operand and result.
        operands: labels of each operand; a repeated label denotes its diagonal.
        extents: extent of each label, by label.
        output: labels of the result, each once.
        steps: numbers of the values that each step consumes.
        kept: numbers of intermediate results that are returned as well.

    Raises:
        ArgumentError: labels, steps or kept values are inconsistent.

    >>> chain = ContractionIR(np.dtype("float64"), ((0, 1), (1, 2), (2, 3)), (2, 3, 4, 5), (0, 3), ((0, 1), (3, 2)))
    >>> chain.values
    ((0, 1), (1, 2), (2, 3), (0, 2), (0, 3))
    >>> chain.flops
    128
    """

    dtype: np.dtype[Any]
    operands: tuple[Labels, ...]
    extents: tuple[int, ...]
    output: Labels
    steps: tuple[tuple[int, ...], ...]
    kept: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        known, have = range(len(self.extents)), {label for labels in self.operands for label in labels}
        if not self.operands or not have <= {*known}:
            raise ArgumentError(f"the labels of operands are among 0..{len(known) - 1}, got {self.operands}")
        if len({*self.output}) != len(self.output) or not {*self.output} <= have:
            raise ArgumentError(f"the output has labels of the operands, each once, got {self.output}")
        count = len(self.operands)
        taken: set[int] = set()
        for number, step in enumerate(self.steps):
            if len(step) not in (1, 2) or any(not 0 <= v < count + number or v in taken for v in step):
                raise ArgumentError(f"step {number} takes {step}, which are not one or two values that are there")
            if len({*step}) != len(step):
                raise ArgumentError(f"step {number} takes the value {step[0]} twice")
            taken.update(step)
        if len(taken) != max(count + len(self.steps) - 1, 0):
            raise ArgumentError(f"the steps {self.steps} leave more than one of {count} operands")
        if any(not count <= v < count + len(self.steps) - 1 for v in self.kept):
            raise ArgumentError(f"kept values are results of steps before the last, got {self.kept}")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.dtype.num, self.operands, self.extents, self.output, self.steps, self.kept))

    @cached_property
    def values(self) -> tuple[Labels, ...]:
        """The labels of every value; those of an intermediate result in the order of its operands."""
        left: dict[int, int] = {}  # by label: unconsumed values that have it, and the output
        for labels in (*self.operands, self.output):
            for label in {*labels}:
                left[label] = left.get(label, 0) + 1
        found = list(self.operands)
        for step in self.steps:
            order: dict[int, None] = {}
            for v in step:
                order |= dict.fromkeys(found[v])
                for label in {*found[v]}:
                    left[label] -= 1
            result = tuple([label for label in order if left[label]])
            for label in result:
                left[label] += 1
            found.append(result)
        if self.steps:
            found[-1] = self.output
        return tuple(found)

    def resized(self, dtype: np.dtype[Any], extents: tuple[int, ...]) -> ContractionIR:
        """The same steps for another dtype, and other extents of the same labels, without new checks.

        Args:
            dtype: new dtype.
            extents: new extents.

        Returns:
            The contraction.

        >>> ir = ContractionIR(np.dtype("float64"), ((0, 1), (1, 2)), (1, 1, 1), (0, 2), ((0, 1),))
        >>> large = ir.resized(np.dtype("float32"), (2, 3, 4))
        >>> large == ContractionIR(np.dtype("float32"), ((0, 1), (1, 2)), (2, 3, 4), (0, 2), ((0, 1),))
        True
        >>> large.values == ir.values and large.flops == 48
        True
        """
        made = object.__new__(ContractionIR)
        kept = {name: getattr(self, name) for name in ("operands", "output", "steps", "kept", "values")}
        made.__dict__.update(kept, dtype=dtype, extents=extents)
        return made

    @cached_property
    def graph(self) -> ContractionGraph:
        """The contraction as a graph, whose outputs are the result and the kept values."""
        count = len(self.operands)
        steps = tuple([(labels, (step,)) for labels, step in zip(self.values[count:], self.steps, strict=True)])
        last = count + max(len(steps), 1) - 1
        made: ContractionGraph = object.__new__(ContractionGraph)  # already checked
        made.__dict__.update(
            dtype=self.dtype, operands=self.operands, extents=self.extents,
            steps=steps or ((self.output, ((0,),)),), outputs=(last, *self.kept),
        )  # fmt: skip
        return made

    @cached_property
    def flops(self) -> int:
        """Real multiplications and additions of all steps."""
        factor = 8 if self.dtype.kind == "c" else 2
        spaces = [{label for v in step for label in self.values[v]} for step in self.steps]
        return sum(factor * prod(self.extents[label] for label in space) for space in spaces)

    def shape(self, value: int) -> tuple[int, ...]:
        """Shape of a value, one axis for each label.

        Args:
            value: number of the value.

        Returns:
            The shape.
        """
        return tuple([self.extents[label] for label in self.values[value]])


@dataclass(frozen=True, slots=True)
class StepReport:
    """How one step runs.

    Attributes:
        step: its number in the IR.
        kernel: the kernel, as in ``"gemm"``, ``"gemm direct"`` or ``"elementwise"``.
        sizes: batch, rows, columns and summed size of the product.
        layout: labels of the result in memory order, outermost first.
        flops: multiplications and additions.
        bytes: bytes of its operands and result.
    """

    step: int
    kernel: str
    sizes: tuple[int, int, int, int]
    layout: Labels
    flops: int
    bytes: int


class ContractionKernel(ABC):
    """A compiled contraction, or a graph of contractions.

    Attributes:
        ir: the contraction.
    """

    ir: ContractionIR | ContractionGraph

    @abstractmethod
    def __call__(self, *raws: Any, out: Any = None) -> Any:
        """Compute the result for raw arrays with the shapes of the IR and any strides.

        Without `out`, the result may be a view of an array with another layout, such as a transposed matrix, if that is
        much cheaper. If the IR keeps values, it returns a tuple of the result and the kept values, whose axes have the
        order of `ContractionIR.values`. For a graph, it is the tuple of outputs.

        Args:
            raws: one for each operand.
            out: raw array for the result, or for a graph's first output, which is returned; it shares no memory with an
                operand.

        Returns:
            The result.
        """

    def direct(self) -> Callable[..., Any]:
        """A callable with the least overhead, for raw arrays of the right shapes; it takes no `out`."""
        return self

    @property
    @abstractmethod
    def peak_bytes(self) -> int:
        """Largest number of bytes that a call has allocated at once, including results, excluding operands."""

    def peak_bytes_at(self, strides: Sequence[tuple[int, ...]]) -> int:
        """`peak_bytes` for operands with given strides, such as parts of larger arrays.

        Args:
            strides: strides of each operand in bytes.

        Returns:
            Bytes.
        """
        return self.peak_bytes

    @property
    def flops(self) -> int:
        """Real multiplications and additions of all steps."""
        return self.ir.flops

    @abstractmethod
    def report(self) -> tuple[StepReport, ...]:
        """How each step runs, for operands in row-major order."""
