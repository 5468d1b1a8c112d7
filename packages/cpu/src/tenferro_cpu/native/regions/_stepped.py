"""Regions carried out step by step in one native call: what runs until a kernel of their own is compiled.

Nothing is compiled for a region: every step is the row kernel of its op, which eager calls use as well. `stepped.c` is
the kernel that calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.entries._eager import row_kernel
from tenferro_cpu.native.kernels._elementwise import Fused
from tenferro_cpu.native.kernels._fused_entry import Rows, entry
from tenferro_cpu.native.kernels._limits import NEVER
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_cpu.native.machine._jit import compiles_programs
from tenferro_cpu.native.regions._region import Done
from tenferro_tensor.device_model import Access, Apply, KernelIR, Literal, Operand, Over, Reduction, Region
from tenferro_tensor_core import BackendUnavailableError, UnsupportedError

BLOCK: Final = 512
"""Elements of the largest block; blocks are multiples of 64, so that scratch places begin with cache lines."""

FRAME, SCRATCH, CONSTANT = range(3)
"""Kinds of places: an operand by its number; bytes of scratch before it, for each element of a block; an address."""

AREA: Final = 48 << 10
"""Bytes of scratch, which are on the stack of the thread that runs a block, and in its nearest cache."""


def stepped(region: Region, fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """A callable for arrays that lie simply, or None where a region cannot be carried out in steps.

    Results are those of the row kernels of its ops, bit for bit. Short rows are reduced where they are made; in other
    reductions what is reduced is written first.

    Args:
        region: what to compute.
        fallback: called with the same arguments for everything else.
    """
    if not compiles_programs():
        return None
    try:
        if not region.reduced:
            return _entry(region, fallback)
        written = _written_first(region, fallback)
        return _entry(region, written or fallback) or written
    except (UnsupportedError, BackendUnavailableError):
        return None


def _entry(region: Region, fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    rows = Rows.of(region)
    if rows is None or rows.combined:
        return None
    plan = _Plan(region.kernel, rows)
    if plan.block == 0:
        return None
    longest = plan.block if rows.reduced else NEVER
    address = compiled.ADDRESSES["tenferro_stepped"]
    return entry(
        address, region.kernel, rows, fallback, cost=plan.cost, context=plan.context(), near=NEVER, longest=longest
    )


def _written_first(region: Region, fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """The steps without the reduction, then the reduction."""
    kernel, reduction = region.kernel, region.kernel.reduction
    assert reduction is not None
    whole = Region(replace(kernel, reduction=None), region.rank, region.axes)
    first = _entry(whole, lambda *raws: Done(fallback(*raws)))
    if first is None:
        return None
    reduce = [_reducing(o.dtype, reduction, region) for o in whole.kernel.written]

    def both(*raws: Any) -> Any:
        found = first(*raws)
        if found.__class__ is Done:
            return found.value
        every = (found,) if len(reduce) == 1 else found
        if not every[0].size:  # whether there is a result, and which one, depends on the op
            return fallback(*raws)
        if len(reduce) == 1:
            return reduce[0](found)
        return tuple([f(x) for f, x in zip(reduce, found, strict=True)])

    return both


def _reducing(dtype: np.dtype[Any], reduction: Reduction, region: Region) -> Callable[..., Any]:
    alone = Reduced(KernelIR((Operand(dtype),), (), (0,), reduction=reduction))
    return alone.entry() if len(region.reduced) == region.rank else partial(alone, axes=region.reduced)


class _Plan:
    """Places of values, and row kernels in order.

    Attributes:
        cost: nanoseconds that one element takes.
        scratch: bytes of scratch for one element.
    """

    def __init__(self, kernel: KernelIR, rows: Rows) -> None:
        self.kernel, self.cost, self.scratch = kernel, 0.0, 0
        self._accesses: dict[int, Access] = dict(enumerate(rows.reads))
        self._places: list[tuple[int, int, int]] = []
        self._steps: list[tuple[int, ...]] = []
        self._of: dict[int, int] = {}
        self._free: dict[int, list[int]] = {}
        self._kept: list[Any] = []
        self._last = {v: i for i, line in enumerate(kernel.lines) if isinstance(line, Apply) for v in line.args}
        for v, (operand, access) in enumerate(zip(kernel.inputs, rows.reads, strict=True)):
            self._of[v] = self._place(FRAME, v, operand.dtype.itemsize if access is Access.UNIT else 0)
        first = len(kernel.inputs)
        lines = range(first, first + len(kernel.lines))
        if {*kernel.outputs} - {*lines} or len({*kernel.outputs}) < len(kernel.outputs):
            raise UnsupportedError("outputs are results of steps, each once")
        self._last.update(dict.fromkeys(kernel.outputs, len(kernel.lines)))
        results = [self._place(FRAME, first + k, o.dtype.itemsize) for k, o in enumerate(kernel.written)]
        # A result may be memory of an operand: it is written when no step is left that reads operands.
        end = max(
            [i for i, line in enumerate(kernel.lines) if isinstance(line, Apply) and min(line.args) < first], default=0
        )
        if kernel.reduction is None:
            self._of.update((v, at) for v, at in zip(kernel.outputs, results, strict=True) if v - first >= end)
        for i, line in enumerate(kernel.lines):
            if isinstance(line, Apply):
                self._apply(i, first + i, line)
        for v, place in zip(kernel.outputs, results, strict=True):
            if kernel.reduction is not None:
                self._reduce(v, place, kernel.reduction.kind)
            elif self._of[v] != place:
                self._copy(v, place)

    @property
    def block(self) -> int:
        """Elements of a block; 0 where there is too much between the steps."""
        return min(BLOCK, AREA // max(self.scratch, 1) // 64 * 64)

    def context(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """What the kernel reads; its memory is that of the array. Head: numbers of steps and places, bytes of scratch
        for each element of a block, elements of a block. For each place its kind, where it is, and how many bytes its
        next element is away; for each step a row kernel, and the places of its operands, then of its result."""
        words = [len(self._steps), len(self._places), self.scratch, self.block]
        for part in (*self._places, *self._steps):
            words += part
        held = np.array(words, dtype=np.int64).view(_Context)
        held.kept = self._kept
        return held

    def _place(self, kind: int, where: int, hop: int) -> int:
        self._places.append((kind, where, hop))
        return len(self._places) - 1

    def _apply(self, number: int, value: int, line: Apply) -> None:
        dtypes = tuple([self.kernel.dtypes[v] for v in line.args])
        out = self.kernel.dtypes[value]
        plain = len(dtypes) == 2 and dtypes[0] == dtypes[1] and line.args[0] != line.args[1]
        numbers = [self._is_number(v) for v in line.args]
        # A number in memory suits the kernels that eager calls have; a block full of it suits every kernel.
        as_number = plain and sum(numbers) == 1
        places = [self._operand(v, as_number) for v in line.args]
        accesses = tuple(
            [
                Access.FIXED if as_number and n else self._accesses.get(v, Access.UNIT)
                for v, n in zip(line.args, numbers, strict=True)
            ]
        )
        address, cost = row_kernel(line.op, dtypes, out, accesses)
        self.cost += cost
        gone = [v for v in {*line.args} if self._last.get(v) == number and v in self._of]
        same = [v for v in gone if self.kernel.dtypes[v].itemsize == out.itemsize]
        for v in same:
            self._give_back(v)
        if value not in self._of:
            self._of[value] = self._take(out.itemsize)
        for v in gone:
            if v not in same:
                self._give_back(v)
        self._step(address, *places, self._of[value])

    def _reduce(self, v: int, place: int, kind: str) -> None:
        operand = Operand(self.kernel.dtypes[v])
        reduced = Reduced(KernelIR((operand,), (), (0,), reduction=Reduction(kind)))
        self.cost += reduced.cost
        self._step(reduced.compiled((Over.TRAILING, (Access.UNIT,), (Access.UNIT,))), self._of[v], place)

    def _copy(self, v: int, place: int) -> None:
        copy = Fused(KernelIR((Operand(self.kernel.dtypes[v]),), (), (0,)))
        self._step(copy.address((Access.UNIT,), (Access.UNIT,)), self._of[v], place)

    def _step(self, address: int, *places: int) -> None:
        self._steps.append((address, *places, *[0] * (4 - len(places))))

    def _is_number(self, v: int) -> bool:
        first = len(self.kernel.inputs)
        return v >= first and isinstance(self.kernel.lines[v - first], Literal)

    def _operand(self, v: int, as_number: bool) -> int:
        if not self._is_number(v):
            return self._of[v]
        line = self.kernel.lines[v - len(self.kernel.inputs)]
        assert isinstance(line, Literal)
        memory = np.full(1 if as_number else BLOCK, line.value, line.dtype)
        self._kept.append(memory)
        return self._place(CONSTANT, memory.ctypes.data, 0)

    def _take(self, itemsize: int) -> int:
        free = self._free.setdefault(itemsize, [])
        if free:
            return free.pop()
        self.scratch += itemsize
        return self._place(SCRATCH, self.scratch - itemsize, 0)

    def _give_back(self, v: int) -> None:
        place = self._of[v]
        if self._places[place][0] == SCRATCH:
            self._free.setdefault(self.kernel.dtypes[v].itemsize, []).append(place)


class _Context(np.ndarray[Any, Any]):
    """Words that hold on to the memory that they point to."""

    kept: list[Any]
