"""Operands of any layout for functions that round, so that the bits of results follow from values alone.

NumPy has several loops for a function, and machine code is one more; they differ in the last place. Which of them runs
must not depend on how an operand lies in memory: `Apart` reads few elements where they are, by the machine code that
contiguous ones have, and `LaidSimply` brings many into the order that an entry takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.kernels._elementwise import Fused, remember
from tenferro_cpu.native.kernels._render import lanes_for
from tenferro_cpu.native.kernels._strided_text import AXES
from tenferro_cpu.native.machine._host import Host
from tenferro_tensor.device_model import Access, KernelIR

Array = np.ndarray[Any, Any]

FEW: Final = 4096
"""Elements up to which they are read where they are; beyond it a copy costs less than steps through memory."""

OFTEN: Final = 3
"""Calls with operands of one kind of layout from which on they have machine code."""


def same_lanes(kernel: KernelIR, host: Host) -> bool:
    """Whether operands at any distance fill vectors as contiguous ones do: functions have a form for full registers."""
    apart = replace(kernel, inputs=tuple([replace(o, access=Access.STRIDED) for o in kernel.inputs]))
    return lanes_for(kernel, host) == lanes_for(apart, host)


class Apart:
    """Machine code of an op for few elements at any distances, compiled for the layouts that come.

    Args:
        kernel: the op.
        most: elements of the largest space.
    """

    def __init__(self, kernel: KernelIR, most: int) -> None:
        self._fused, self.most = Fused(kernel), most
        self._met: dict[Any, int] = {}
        self._compiled: dict[Any, bool] = {}

    def builtin(self, fallback: Callable[..., Any], watch: bool, scan: bool) -> Callable[..., Any]:
        """The built-in function; `fallback` takes what has no machine code, and what NumPy warns of."""
        return self._fused.strided(fallback, watch=watch, scan=scan, most=self.most)

    def meet(self, operands: tuple[Any, ...]) -> None:
        """Compile for such operands when they have come often enough."""
        kind = tuple(map(_layout, operands))
        met = self._met.get(kind, 0) + 1
        remember(self._met, kind, met)
        if met == OFTEN:
            self._compile(operands)

    def learns(self, operands: tuple[Any, ...]) -> bool:
        """Compile for these operands; whether that was new."""
        kind = tuple([(x.shape, x.strides) if x.__class__ is np.ndarray else None for x in operands])
        if kind in self._compiled or len(np.broadcast_shapes(*[np.shape(x) for x in operands])) > AXES:
            return False
        self._compile(operands)
        remember(self._compiled, kind, True)
        return True

    def _compile(self, operands: tuple[Any, ...]) -> None:
        dtype = self._fused.kernel.inputs[0].dtype
        with np.errstate(all="ignore"):
            self._fused(*[np.asarray(x, dtype) for x in operands])


class LaidSimply:
    """What an entry leaves to others: operands that lie otherwise come back to it, all else goes to NumPy.

    Results of few elements are contiguous, as those of `Apart` are; of many they keep the order of the operands. Which
    code runs never depends on what ran before, but where both give the same bits.

    Args:
        count: number of operands.
        run: NumPy's function, for what does lie simply: where it warns, and where it is faster.
        apart: for small operands, where there is machine code for those of different shapes.

    Attributes:
        entry: the entry, which is made after this.
        builtin: that of `apart`.
    """

    entry: Callable[..., Any]
    builtin: Callable[..., Any]

    def __init__(self, count: int, run: Callable[..., Any], apart: Apart | None) -> None:
        self.count, self.run, self.apart = count, run, apart

    def __call__(self, *args: Any) -> Any:
        x, apart = args[0], self.apart
        if apart is None and len(args) == 1 and x.__class__ is np.ndarray and x.size <= FEW:
            return self.run(x) if _is_simple(x) else self.entry(x.copy("C"))
        operands = args[: self.count]
        arrays = [x for x in operands if x.__class__ is np.ndarray]
        few = max([x.size for x in arrays], default=0) <= FEW
        if all(map(_is_simple, arrays)):
            if apart is not None and few and len(args) == self.count and self._broadcasts(arrays, apart.most):
                if apart.learns(operands):
                    return self.builtin(*args)
            return self.run(*args)
        if apart is not None and few:
            apart.meet(operands)
        order = None if few or len(args) > self.count else _order(arrays)
        if order is None:
            return self.entry(*map(_simple, operands), *args[self.count :])
        turned = [x.transpose(order) if x.__class__ is np.ndarray else x for x in args]
        return self.entry(*map(_simple, turned)).transpose(np.argsort(order))

    def _broadcasts(self, arrays: list[Array], most: int) -> bool:
        shapes = {x.shape for x in arrays}
        own = arrays[0].dtype if arrays else None
        return len(shapes) > 1 and all(x.dtype is own for x in arrays) and prod(np.broadcast_shapes(*shapes)) <= most


def _layout(x: Any) -> Any:
    """What the choice of machine code depends on, sizes aside: which axes are repeated, and their order in memory."""
    if x.__class__ is not np.ndarray:
        return None
    steps = [abs(s) for s in x.strides]
    repeated = tuple([s == 0 or n == 1 for s, n in zip(steps, x.shape)])
    return repeated, tuple(sorted(range(x.ndim), key=steps.__getitem__)), x.itemsize in x.strides


def _is_simple(x: Array) -> bool:
    return x.flags.c_contiguous and x.flags.aligned


def _simple(x: Any) -> Any:
    return x if x.__class__ is not np.ndarray or _is_simple(x) else x.copy("C")


def _order(arrays: list[Array]) -> list[int] | None:
    """The order of axes in which operands of one shape lie one element after the other, or None."""
    order, shape = None, arrays[0].shape
    for x in arrays:
        strides = x.strides
        if x.shape != shape or 0 in strides:
            return None
        own = sorted(range(x.ndim), key=lambda axis: -abs(strides[axis]))
        if order is not None and own != order:
            return None
        order = own
    return None if order == list(range(len(shape))) else order
