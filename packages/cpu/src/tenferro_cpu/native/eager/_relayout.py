"""Operands of any layout for functions that round, so that the bits of results depend on values alone.

NumPy has several loops for a function, and machine code is one more; they differ in the last place. The choice must not
depend on the memory layout of an operand: `StridedCode` reads few elements in place, with the machine code used for
contiguous ones, and `Relayout` copies many into the order that an entry takes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.kernels._elementwise import Elementwise, remember
from tenferro_cpu.native.kernels._forms import Access, lanes_for
from tenferro_cpu.native.kernels._limits import MAX_AXES
from tenferro_tensor import Op

Array = np.ndarray[Any, Any]

IN_PLACE_MAX_ELEMENTS: Final = 4096
"""Maximum elements that are read in place; for more, a copy costs less than strided access."""

COMPILE_MIN_CALLS: Final = 3
"""Number of calls with one kind of layout after which machine code is compiled for it."""


def same_lanes(dtypes: tuple[np.dtype[Any], ...], out: np.dtype[Any], host: Host) -> bool:
    """Whether strided operands fill vectors as contiguous ones do: functions have a variant for full registers."""
    every = (*dtypes, out)
    return lanes_for(every, (), host) == lanes_for(every, (Access.STRIDED,), host)


class StridedCode:
    """Machine code of an op for few strided elements, compiled for the layouts that occur.

    Args:
        op: the op.
        dtypes: dtypes of its operands, which are equal.
        most: elements of the largest space.
    """

    def __init__(self, op: Op, dtypes: tuple[np.dtype[Any], ...], most: int) -> None:
        self._kernel, self.most = Elementwise(op, dtypes), most
        self._met: dict[Any, int] = {}
        self._compiled: dict[Any, bool] = {}

    def builtin(self, fallback: Callable[..., Any], watch: bool, scan: bool) -> Callable[..., Any]:
        """The built-in function; `fallback` takes layouts without machine code, and operands that NumPy warns about."""
        return self._kernel.strided(fallback, watch=watch, scan=scan, most=self.most)

    def meet(self, operands: tuple[Any, ...]) -> None:
        """Count such operands, and compile for them once they have occurred often enough."""
        kind = tuple(map(_layout, operands))
        met = self._met.get(kind, 0) + 1
        remember(self._met, kind, met)
        if met == COMPILE_MIN_CALLS:
            self._compile(operands)

    def learns(self, operands: tuple[Any, ...], shapes: set[tuple[int, ...]]) -> bool:
        """Compile for these operands of different shapes if they broadcast to few elements; returns whether new."""
        kind = tuple([(x.shape, x.strides) if x.__class__ is np.ndarray else None for x in operands])
        if kind in self._compiled or max(map(len, shapes)) > MAX_AXES:
            return False
        try:
            space = np.broadcast_shapes(*shapes)
        except ValueError:  # for NumPy to refuse
            return False
        if prod(space) > self.most:
            return False
        self._compile(operands)
        remember(self._compiled, kind, True)
        return True

    def _compile(self, operands: tuple[Any, ...]) -> None:
        dtype = self._kernel.dtypes[0]
        try:
            arrays = [np.asarray(x, dtype) for x in operands]
            space = np.broadcast_shapes(*[x.shape for x in arrays])
        except (TypeError, ValueError, OverflowError):  # for NumPy to refuse
            return
        if prod(space) <= self.most:
            self._kernel(*arrays)


class Relayout:
    """Fallback of an entry: copies operands in other layouts and returns them to the entry; the rest goes to NumPy.

    Results of few elements are contiguous, like those of `StridedCode`; results of many keep the order of the operands.
    The code that runs never depends on earlier calls, unless both choices have equal bits.

    Args:
        count: number of operands.
        dtype: their dtype.
        run: NumPy's function, for operands in simple layouts: where it warns, and where it is faster.
        apart: for small operands, if there is machine code for different shapes.

    Attributes:
        entry: the entry, which is created later.
        builtin: that of `apart`.
    """

    entry: Callable[..., Any]
    builtin: Callable[..., Any]

    def __init__(self, count: int, dtype: np.dtype[Any], run: Callable[..., Any], apart: StridedCode | None) -> None:
        self.count, self.dtype, self.run, self.apart = count, dtype, run, apart

    def __call__(self, *args: Any) -> Any:
        arrays = [x for x in args if x.__class__ is np.ndarray]
        if len(args) != self.count or not arrays or any(x.dtype != self.dtype for x in arrays):
            return self.run(*args)
        few = max([x.size for x in arrays]) <= IN_PLACE_MAX_ELEMENTS
        if all(map(_is_simple, arrays)):
            return self._simple(args, arrays, few)
        if self.apart is not None and few and max([x.ndim for x in arrays]) <= MAX_AXES:
            self.apart.meet(args)
        order = None if few else _order(arrays)
        if order is None:
            return self.entry(*map(_copied, args))
        turned = [x.transpose(order) if x.__class__ is np.ndarray else x for x in args]
        return self.entry(*map(_copied, turned)).transpose(np.argsort(order))

    def _simple(self, args: tuple[Any, ...], arrays: list[Array], few: bool) -> Any:
        """Operands in a simple layout: few elements of different shapes get machine code."""
        shapes = {x.shape for x in arrays}
        if self.apart is not None and few and len(shapes) > 1 and self.apart.learns(args, shapes):
            return self.builtin(*args)
        return self.run(*args)


def _layout(x: Any) -> Any:
    """The features of a layout that select machine code, apart from sizes: repeated axes, and the order in memory."""
    if x.__class__ is not np.ndarray:
        return None
    steps = [abs(s) for s in x.strides]
    repeated = tuple([s == 0 or n == 1 for s, n in zip(steps, x.shape)])
    return repeated, tuple(sorted(range(x.ndim), key=steps.__getitem__)), x.itemsize in x.strides


def _is_simple(x: Array) -> bool:
    return x.flags.c_contiguous and x.flags.aligned


def _copied(x: Any) -> Any:
    return x if x.__class__ is not np.ndarray or _is_simple(x) else x.copy("C")


def _order(arrays: list[Array]) -> list[int] | None:
    """The axis order in which operands of one shape are all contiguous, or None."""
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
