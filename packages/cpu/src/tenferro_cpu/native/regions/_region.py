"""Regions of programs as functions of NumPy arrays: machine code for every layout, compiled where nobody waits."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.kernels._device import llvm
from tenferro_cpu.native.kernels._elementwise import Fused, NotReady, remember
from tenferro_cpu.native.kernels._fused_entry import Rows, entry
from tenferro_cpu.native.kernels._laid import layout_of
from tenferro_cpu.native.kernels._limits import MOST_OPERANDS
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_cpu.native.machine._jit import compiles_programs, engine
from tenferro_cpu.native.operations._ops import rule_for
from tenferro_tensor import Op, catalog
from tenferro_tensor.device_model import (
    Access,
    KernelIR,
    Later,
    Literal,
    Operand,
    Over,
    Region,
    expanded,
    expansion,
    in_rows,
)
from tenferro_tensor_core import BackendUnavailableError, UnsupportedError

_REDUCED = frozenset({
    catalog.reduce_sum, catalog.reduce_prod, catalog.reduce_max, catalog.reduce_min, catalog.reduce_all,
    catalog.reduce_any,
})  # fmt: skip


def fuses(op: Op, operands: tuple[np.dtype[Any] | Literal, ...], result: np.dtype[Any]) -> bool:
    """Whether an op may be part of a region; the processor is not asked."""
    if not compiles_programs():
        return False
    dtypes = tuple([o.dtype if isinstance(o, Literal) else o for o in operands])
    if op.primitive in _REDUCED:
        return dtypes[0].kind in "biufc"
    if op.primitive is catalog.convert and dtypes[0].kind in "fc" and result.kind in "iu":
        return False  # out of range NumPy's own conversion decides, which differs between sizes and processors
    if not op.primitive.elementwise:
        return False
    return rule_for(op.primitive, dtypes, True) is not None or expansion(op, *operands) is not None


def fused(region: Region, fallback: Callable[..., Any], later: Later) -> Callable[..., Any] | None:
    """Machine code for a region, or None where this processor or this process has none."""
    if not compiles_programs() or len(region.axes) + len(region.kernel.outputs) > MOST_OPERANDS:
        return None
    try:
        region = replace(region, kernel=expanded(region.kernel, llvm(engine()).renderer.decompose))
        return _Planned(region, fallback, later).entry()
    except (UnsupportedError, BackendUnavailableError):
        return None


def at_hand(region: Region) -> bool:
    """Whether `fused` takes a moment only, for its machine code is on disk."""
    many = len(region.axes) + len(region.kernel.outputs) > MOST_OPERANDS
    rows = None if many or not compiles_programs() else Rows.of(region)
    try:
        return rows is not None and _Planned(region, _absent, lambda make: None).at_hand(rows)
    except BackendUnavailableError:
        return False


def _absent(*raws: Any) -> Any:
    raise AssertionError("nothing is run")


SMALL: Final = 4096
"""Elements up to which planning a reduction costs more than going op by op: it is done for layouts that come again."""


class _Planned:
    """The region for arrays of any layout; what is not compiled yet is left to the fallback, and compiled."""

    def __init__(self, region: Region, fallback: Callable[..., Any], later: Later) -> None:
        self.region, self.fallback, self.later = region, fallback, later
        kernel = region.kernel
        self.kernel: Fused | Reduced
        if kernel.reduction is None:
            self.kernel = Fused(kernel, lazy=True)
            self.run: Callable[..., Any] = self.kernel
        else:
            self.kernel = Reduced(kernel, lazy=True)
            self.run = partial(self.kernel, axes=region.reduced)
        self.met: dict[Any, bool] = {}
        self.expansions = [(i, index) for i, index in enumerate(region.expansions()) if index is not None]

    def __call__(self, *raws: Any) -> Any:
        count = len(self.region.axes)
        arrays, spare = list(raws[:count]), raws[count:]
        if self.region.ordered and not all(map(in_rows, arrays)):
            return self.fallback(*raws)
        small = max([x.size for x in arrays]) <= SMALL
        reduced = self.kernel if isinstance(self.kernel, Reduced) else None
        layout = layout_of(raws) if small and reduced and not spare else None
        if small and (reduced or spare) and not self.met.get(layout) and self._elements(arrays) <= SMALL:
            if layout is not None:
                remember(self.met, layout, layout not in self.met)
            return self.fallback(*raws)
        for i, index in self.expansions:
            arrays[i] = raws[i][index]
        try:
            if reduced and layout is not None:
                found = self.run(*arrays)
                if reduced.known(arrays, self.region.reduced) or self._elements(raws) > SMALL:
                    return found
                # What is not one call afterwards is not worth it; all calls of this layout are then rounded in one way.
                remember(self.met, layout, False)
                return self.fallback(*raws)
            if spare:
                return self.run(*arrays, out=tuple([y if _writable(y) else None for y in spare]))
            return self.run(*arrays)
        except NotReady as missing:
            self.later(missing.make)
            return self.fallback(*raws)

    def _elements(self, arrays: Sequence[Any]) -> int:
        """Elements of the iteration space, which operands that are repeated along other axes span together."""
        extents = [1] * self.region.rank
        for axes, x in zip(self.region.axes, arrays):
            for axis, n in zip(axes, x.shape):
                extents[axis] = n if extents[axis] == 1 else extents[axis]
        return prod(extents)

    def entry(self) -> Callable[..., Any]:
        """The region as a built-in function that takes what lies simply itself, and plans for the rest."""
        rows, region = Rows.of(self.region), self.region
        otherwise: Callable[..., Any] = self
        if isinstance(self.kernel, Fused) and not region.ordered:
            otherwise = self.kernel.strided(self, axes=region.axes, rank=region.rank)
        if rows is not None:
            return self._entry(rows, otherwise)
        return self._in_two_steps() or otherwise

    def _entry(self, rows: Rows, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        address, rest = self.kernel.compiled(self._variant(rows)), 0
        if rows.combined and isinstance(self.kernel, Reduced):
            kernel, variant = self.kernel.rest
            rest = kernel.compiled(variant)
        return entry(address, self.region.kernel, rows, otherwise, cost=self.kernel.cost, rest=rest)

    def at_hand(self, rows: Rows) -> bool:
        """Whether the machine code for such rows needs no compiling."""
        found = self.kernel.at_hand(self._variant(rows))
        if found and rows.combined and isinstance(self.kernel, Reduced):
            kernel, variant = self.kernel.rest
            return kernel.at_hand(variant)
        return found

    def _variant(self, rows: Rows) -> Any:
        writes = (Access.UNIT,) * len(self.region.kernel.outputs)
        if isinstance(self.kernel, Fused):
            return rows.reads, writes, False
        return Over.LEADING if rows.combined else Over.TRAILING, rows.reads, writes

    def _in_two_steps(self) -> Callable[..., Any] | None:
        """All axes reduced where some operands are rows or columns: rows are combined, and then reduced."""
        region, kernel = self.region, self.region.kernel
        if len(region.reduced) != region.rank or len(kernel.outputs) != 1:
            return None
        for split in range(1, region.rank):
            rows = Rows.of(replace(region, reduced=tuple(range(split))))
            if rows is not None:
                first = self._entry(rows, lambda *raws: Done(self(*raws)))
                rest = KernelIR((Operand(kernel.written[0].dtype),), (), (0,), reduction=kernel.reduction)
                return _then(first, Reduced(rest).entry())
        return None


def _writable(y: Any) -> bool:
    return isinstance(y, np.ndarray) and y.flags.carray


def _then(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    """Both steps, one after the other, unless the first one says that it is done."""

    def both(*raws: Any) -> Any:
        found = first(*raws)
        return found.value if found.__class__ is Done else second(found)

    return both


class Done:
    """A result that needs no second step."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
