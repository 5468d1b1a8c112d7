"""`LoopFunction`s as GPU kernels that the processor runs: a `KernelTarget` over `host_kernels`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from host_kernels import HostFunction, Order, library_of
from tenferro_gpu.whole import KernelSequence
from tenferro_tensor import host_kernel
from tenferro_tensor.loop_ir import LoopFunction
from tenferro_tensor_core import UnsupportedError

GROUP = 8
"""Work items of a group, fewer than on a GPU."""


class HostTarget:
    """Stands in for a GPU: compiles and runs kernels of loop nests on the processor.

    Args:
        order: of the work items.
        group: work items of a group.

    Attributes:
        launches: entry and number of groups of each launch.
        sources: what was compiled.
    """

    def __init__(self, order: Order = "forwards", group: int = GROUP) -> None:
        self.order: Order = order
        self.group = group
        self.launches: list[tuple[str, int]] = []
        self.sources: list[str] = []

    def functions(self, source: str, entries: Sequence[str]) -> Any:
        self.sources.append(source)
        path = library_of(source) if entries else None
        found = [self._function(path, entry) for entry in entries]
        return lambda device: found

    def _function(self, path: Any, entry: str) -> Any:
        run = HostFunction(path, entry, self.order)

        def launch(grid: Any, block: Any, args: Any) -> None:
            self.launches.append((entry, grid[0]))
            run(grid, (self.group,), args)

        return launch

    def start(self, run: Any, raws: Any) -> Any:
        return run(0, raws)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return np.full(shape, 77, dtype)

    def lying(self, raw: Any) -> Any:
        return np.ascontiguousarray(raw).reshape(raw.shape)

    def address(self, raw: Any) -> int:
        return int(raw.__array_interface__["data"][0])

    def viewed(self, flat: Any, at: int, shape: Any, strides: Any) -> Any:
        if 0 in shape:
            return np.empty(shape, flat.dtype)
        return as_strided(flat[at:], shape, [s * flat.itemsize for s in strides])

    def kernel(self, op: Any, ins: Any, outs: Any, device: int) -> Any:
        self.launches.append((op.primitive.name, 0))
        return host_kernel(op, ins, outs)

    def require_kernel(self, op: Any) -> None:
        if op.primitive.name == "pure_callback":
            raise UnsupportedError("pure_callback has no kernel here")

    def stream(self) -> int:
        return 0

    def recorded(self, run: Any) -> Any:
        return run

    def uploaded(self, array: Any, device: int) -> Any:
        return array.copy()

    def downloaded(self, raw: Any, device: int) -> Any:
        return np.array(raw)


def run_kernels(
    function: LoopFunction, *inputs: Any, sizes: Mapping[str, int] | None = None, target: HostTarget | None = None
) -> list[np.ndarray]:
    """The outputs of a function, by kernels."""
    run = KernelSequence(function, target or HostTarget())
    arrays = [np.require(x, b.dtype, "C") for x, b in zip(inputs, function.inputs, strict=True)]
    return list(run(tuple((sizes or {})[name] for name in function.sizes), *arrays))
