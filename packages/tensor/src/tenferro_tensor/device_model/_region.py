"""`Region`: a fused kernel with the axes of its operands, which program compilers request from a backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tenferro_tensor._spec import Spec
from tenferro_tensor.device_model._kernel_ir import KernelIR
from tenferro_tensor_core import ArgumentError, DimLike


@dataclass(frozen=True, slots=True)
class Region:
    """A fused kernel over an iteration space of a given rank, for all extents.

    The accesses of the kernel are placeholders: a backend chooses them by the layout of the arrays.

    Attributes:
        kernel: the computation for each element of the space.
        rank: number of axes of the space.
        axes: for each input, the ascending axes of the space to which its own axes correspond; it broadcasts along the
            others. Every axis of the space is one of some input.
        reduced: the axes that the kernel's reduction removes.
        ordered: whether results have the layout of single operations, which follow the order of their operands. A
            kernel that writes rows leaves operands that are not `in_rows` to its fallback.

    Raises:
        ArgumentError: the axes do not match the kernel or the rank.

    >>> import numpy as np
    >>> from tenferro_tensor.catalog import mul
    >>> from tenferro_tensor.device_model import Apply, Operand
    >>> f8 = Operand(np.dtype("float64"))
    >>> scale = Region(KernelIR((f8, f8), (Apply(mul.op(), (0, 1)),), (2,)), 2, ((0, 1), (1,)))
    >>> [str(s) for s in scale.outputs(Spec((2, 3), "float64"), Spec((3,), "float64"))]
    ['float64[2, 3]']
    """

    kernel: KernelIR
    rank: int
    axes: tuple[tuple[int, ...], ...]
    reduced: tuple[int, ...] = ()
    ordered: bool = False

    def __post_init__(self) -> None:
        if len(self.axes) != len(self.kernel.inputs):
            raise ArgumentError(f"the kernel has {len(self.kernel.inputs)} inputs, got axes for {len(self.axes)}")
        every = tuple(range(self.rank))
        for axes in (*self.axes, self.reduced):
            if any(a not in every for a in axes) or list(axes) != sorted(set(axes)):
                raise ArgumentError(f"axes {axes} are not ascending axes of a space of rank {self.rank}")
        if {a for axes in self.axes for a in axes} != {*every}:
            raise ArgumentError(f"no input has axis {sorted({*every} - {a for axes in self.axes for a in axes})[0]}")
        if (self.kernel.reduction is None) != (not self.reduced):
            raise ArgumentError("a region has axes to reduce exactly where its kernel has a reduction")

    def extents(self, *specs: Spec) -> tuple[DimLike, ...]:
        """The iteration space for given inputs.

        Args:
            specs: specs of the inputs.

        Returns:
            Its extents.
        """
        found: list[DimLike] = [0] * self.rank
        for spec, axes in zip(specs, self.axes, strict=True):
            for axis, extent in zip(axes, spec.shape, strict=True):
                found[axis] = extent
        return tuple(found)

    def outputs(self, *specs: Spec) -> tuple[Spec, ...]:
        """Specs of the outputs for given inputs.

        Args:
            specs: specs of the inputs.

        Returns:
            The specs.
        """
        shape = tuple([d for k, d in enumerate(self.extents(*specs)) if k not in self.reduced])
        return tuple([specs[0].with_(shape=shape, dtype=o.dtype) for o in self.kernel.written])

    def expansions(self) -> tuple[Any, ...]:
        """For each input, the index that inserts axes of extent 1 after its first axis where it broadcasts; None if it
        needs none.
        """
        found: list[Any] = []
        for axes in self.axes:
            if axes and axes != tuple(range(self.rank - len(axes), self.rank)):
                found.append(tuple([slice(None) if a in axes else None for a in range(axes[0], self.rank)]))
            else:
                found.append(None)
        return tuple(found)


def in_rows(raw: Any) -> bool:
    """Whether an array is laid out in axis order, with neighbours of the last axis closest.

    Args:
        raw: array.

    Returns:
        True for row-major arrays and their slices.

    >>> import numpy as np
    >>> x = np.zeros((4, 6))
    >>> in_rows(x), in_rows(x[:, ::2]), in_rows(x.T)
    (True, True, False)
    """
    if raw.flags.c_contiguous:
        return True
    steps = [s for n, s in zip(raw.shape, raw.strides) if n > 1]
    return steps[-1] > 0 and all(a >= b for a, b in pairwise(steps))


Later = Callable[[Callable[[], object]], None]
"""Runs a function in the background, at some later time."""
