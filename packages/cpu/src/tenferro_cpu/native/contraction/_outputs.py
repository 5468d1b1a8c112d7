"""Memory of the results of a graph: large ones individually, many small ones of one shape as parts of shared blocks."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tenferro_cpu.native.contraction import tuning
from tenferro_cpu.native.memory._pool import POOLED_MIN_BYTES, serving
from tenferro_tensor.device_model import ContractionGraph, Labels


def maker(nbytes: int) -> Callable[..., Any]:
    """The allocation function for arrays of this size."""
    memory = serving() if nbytes >= POOLED_MIN_BYTES else None
    return np.empty if memory is None else memory.empty


class Outputs:
    """The outputs of a graph, except the first, which callers may provide.

    Attributes:
        shape: shape of the first, axes in memory order.
        axes: for each of its labels the index of its axis; None for the same order.

    Args:
        graph: the graph.
        orders: for each of its outputs, its labels in memory order.
    """

    def __init__(self, graph: ContractionGraph, orders: Sequence[Labels]) -> None:
        self.dtype = graph.dtype
        first, labels = orders[0], graph.values[graph.outputs[0]]
        self.shape = tuple([graph.extents[x] for x in first]) if first != labels else graph.shape(graph.outputs[0])
        self.axes = None if first == labels else tuple([first.index(x) for x in labels])
        self._turned: list[tuple[int, tuple[int, ...]]] = []
        self._blocks: list[tuple[Callable[..., Any], tuple[int, ...], list[int] | int]] = []
        like: dict[tuple[int, ...], list[int]] = {}
        for n, (value, lie) in enumerate(zip(graph.outputs[1:], orders[1:], strict=True)):
            labels = graph.values[value]
            like.setdefault(tuple([graph.extents[x] for x in lie]), []).append(n)
            if lie != labels:
                self._turned.append((n, tuple([lie.index(x) for x in labels])))
        for shape, numbers in like.items():
            self._share(shape, numbers)
        self._count = len(graph.outputs) - 1

    def _share(self, shape: tuple[int, ...], numbers: list[int]) -> None:
        nbytes = prod(shape) * self.dtype.itemsize
        if len(numbers) < tuning.SHARED_MIN_OUTPUTS or nbytes >= POOLED_MIN_BYTES or not shape:
            self._blocks += [(maker(nbytes), shape, n) for n in numbers]
            return
        most = max(1, tuning.OUTPUT_BLOCK_BYTES // max(nbytes, 1))
        for start in range(0, len(numbers), most):
            part = numbers[start : start + most]
            self._blocks.append((maker(nbytes * len(part)), (len(part), *shape), part))

    def make(self) -> tuple[list[Any], list[Any]]:
        """Allocate the arrays, axes in memory order; and the blocks that hold nothing else."""
        found: list[Any] = [None] * self._count
        blocks = []
        for make, shape, where in self._blocks:
            block = make(shape, self.dtype)
            blocks.append(block)
            if where.__class__ is int:
                found[where] = block
            else:
                for n, x in zip(where, block):  # type: ignore[arg-type]
                    found[n] = x
        return found, blocks

    def turned(self, found: list[Any]) -> list[Any]:
        """The same arrays with axes in the order of the labels."""
        for n, axes in self._turned:
            found[n] = found[n].transpose(axes)
        return found
