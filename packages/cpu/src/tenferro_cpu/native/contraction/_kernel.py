"""The contraction kernel of the CPU: plans by strides, memory from the pool, one call of machine code."""

import sys
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from math import prod
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.contraction._bound import Bound
from tenferro_cpu.native.contraction._chains import folded
from tenferro_cpu.native.contraction._entry_text import OPERANDS, ROOM, STACK, numbers
from tenferro_cpu.native.contraction._module import HEADER, machine
from tenferro_cpu.native.contraction._outputs import Outputs, maker
from tenferro_cpu.native.contraction._plan import LONG_WORK, make
from tenferro_cpu.native.contraction._report import Plan, reports
from tenferro_cpu.native.machine._jit import available
from tenferro_cpu.native.python._builtin import builtin
from tenferro_cpu.native.python._capi import symbols
from tenferro_cpu.native.python._layout import Layout
from tenferro_cpu.native.threads._threads import usable_cores
from tenferro_tensor.device_model import ContractionGraph, ContractionIR, ContractionKernel, StepReport
from tenferro_tensor_core import ArgumentError, ShapeError
from tenferro_tensor_core.forks import cached_property, new_lock

PLANS: Final = 16
"""Plans that a kernel keeps, one for each way in which operands and result have lain in memory."""

KEPT: Final = Bound(256 << 20)
"""What the plans of all kernels may take: shapes that change with every call leave plans behind."""

_strides_of = attrgetter("strides")

CHARS: Final = "fdFD"
"""Dtypes that the engine is rendered for."""


def contraction(ir: ContractionIR | ContractionGraph) -> ContractionKernel | None:
    """The engine's kernel, or None for dtypes that it does not have and where there is no compiler."""
    if ir.dtype.char not in CHARS or not ir.dtype.isnative or not available() or symbols() is None:
        return None
    if Layout.found() is None:
        return None
    return CpuContraction(ir)


class CpuContraction(ContractionKernel):
    """Contractions of NumPy arrays with any strides; safe to call from many threads."""

    def __init__(self, ir: ContractionIR | ContractionGraph) -> None:
        self.ir = ir
        self._graph = graph = folded(ir if isinstance(ir, ContractionGraph) else ir.graph)
        self._several = len(graph.outputs) > 1 or isinstance(ir, ContractionGraph)
        self._kind, self._define, self._enter = machine(ir.dtype.char)
        self._plans: OrderedDict[Any, tuple[Plan, Any, Outputs]] = OrderedDict()
        self._lock = new_lock()
        self._quick: Any = None
        self._quick_plan: Plan | None = None
        self._one = np.ones((), ir.dtype)
        self._shapes = tuple([graph.shape(number) for number in range(len(graph.operands))])
        self._scalars = [number for number, shape in enumerate(self._shapes) if not shape]
        self._made_first = bool(self._scalars or graph.conjugated)
        self._shape = graph.shape(graph.outputs[0])
        self._result = maker(prod(self._shape) * ir.dtype.itemsize)

    def __call__(self, *raws: Any, out: Any = None) -> Any:
        """As the contract says.

        Callers know the shapes and dtypes of what they pass: these are looked at only where arrays lie in a new way.

        Raises:
            ArgumentError: `out` is no array that can be written to.
            ShapeError: operands or `out` have other shapes or dtypes than the IR says.
        """
        if self._made_first:
            raws = self._made(raws)
        key: Any = tuple(map(_strides_of, raws))
        if out is not None:
            if not isinstance(out, np.ndarray) or not out.flags.writeable:
                what = "one that cannot" if isinstance(out, np.ndarray) else type(out).__name__
                raise ArgumentError(f"out is an array that can be written to, got {what}")
            key = (key, out.strides)
        plan, run, outputs = self._plans.get(key) or self._plan(key, raws, out)
        result = self._result(outputs.shape, self.ir.dtype) if out is None else out
        arena = maker(plan.arena)(plan.arena, np.uint8) if plan.arena else self._one
        if not self._several:
            run(*raws, arena, result, self._one)
            return result if outputs.axes is None else result.transpose(outputs.axes)
        rest, blocks = outputs.make()
        run(*raws, arena, result, *rest, self._one)
        if self._graph.conjugated:
            for z in (result, *blocks):
                np.conjugate(z, z)
        first = result if outputs.axes is None else result.transpose(outputs.axes)
        return (first, *outputs.turned(rest))

    def _made(self, raws: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arrays for numbers, which NumPy gives for arrays without axes; conjugates where these are asked for."""
        self._require_all(raws)
        made = list(raws)
        for number in self._scalars:
            made[number] = np.asarray(made[number])
        for number in range(self._graph.conjugated):
            made[number] = np.conjugate(made[number], out=np.empty_like(made[number]))
        return tuple(made)

    def _require_all(self, raws: tuple[Any, ...]) -> None:
        if len(raws) != len(self._shapes):
            raise ShapeError(f"a contraction of {len(self._shapes)} operands got {len(raws)}")

    def _plan(self, key: Any, raws: tuple[Any, ...], out: Any) -> tuple[Plan, Any, Outputs]:
        self._require_all(raws)
        given, wanted = (*raws, *([] if out is None else [out])), (*self._shapes, self._shape)
        for number, (x, shape) in enumerate(zip(given, wanted, strict=False)):
            if x.shape != shape or x.dtype != self.ir.dtype:
                what = f"operand {number}" if number < len(raws) else "out"
                raise ShapeError(
                    f"{what} of a contraction of {self.ir.dtype} has shape {x.shape} and dtype {x.dtype}; "
                    f"it was made for {shape}",
                    shape=x.shape,
                )
        strides = None if out is None else out.strides
        plan = make(self._kind, self._graph, [x.strides for x in raws], strides, usable_cores())
        with self._lock:
            outputs = Outputs(self._graph, plan.orders)
            if out is None and self._quick is not None and outputs.axes is None:
                self._quicken(plan, [x.strides for x in raws])
            found = self._plans[key] = plan, builtin(self._define, plan.header), outputs
            while len(self._plans) > PLANS:
                self._plans.popitem(last=False)
        KEPT.note(self, plan.nbytes)
        return found

    def forget(self) -> None:
        """Give the plans up, but for that of the entry of small contractions; calls that run hold theirs."""
        with self._lock:
            self._plans.clear()

    def direct(self) -> Any:
        """A built-in function, where plans may be small enough for `_entry_text`."""
        few = len(self._shapes) <= OPERANDS and self.ir.flops <= LONG_WORK
        if not few or self._several or self._scalars or self._result is not np.empty:
            return self
        with self._lock:
            self._quick = self._quick or array("q", bytes(8 * ROOM))
        at = self._quick.buffer_info()[0].to_bytes(8, sys.byteorder)
        return builtin(self._enter, (at, self, self._quick))

    def _quicken(self, plan: Plan, strides: list[tuple[int, ...]]) -> None:
        """Let calls with operands that lie this way be done by the entry."""
        assert self._quick is not None
        head = dict(zip(HEADER, array("q", plan.header), strict=True))
        if plan.arena > STACK or head["pieces"] > 1:
            return
        known = {"descr": id(self.ir.dtype), "one": self._one.ctypes.data}
        known |= {name: head[name] for name in ("records", "steps", "scratch")}
        told = array("q", numbers(known, self._shape, list(zip(self._shapes, strides, strict=True))))
        if len(told) <= ROOM:
            self._quick[: len(told)] = told
            self._quick_plan = plan  # only now: until then calls in other threads read the records of the one before

    @cached_property
    def _contiguous(self) -> Plan:
        strides = [np.empty(shape, self.ir.dtype).strides for shape in self._shapes]
        return make(self._kind, self._graph, strides, None, usable_cores())

    @property
    def peak_bytes(self) -> int:
        """As the contract says, for operands whose axes lie in order."""
        return self._contiguous.arena + self._result_bytes

    def peak_bytes_at(self, strides: Sequence[tuple[int, ...]]) -> int:
        """As the contract says."""
        return make(self._kind, self._graph, strides, None, usable_cores()).arena + self._result_bytes

    @property
    def _result_bytes(self) -> int:
        """Of all outputs, and of operands that are conjugated before."""
        made = (*range(self._graph.conjugated), *self._graph.outputs)
        return sum([prod(self._graph.shape(v)) * self.ir.dtype.itemsize for v in made])

    def report(self) -> tuple[StepReport, ...]:
        """As the contract says."""
        return reports(self._kind, self._graph, self._contiguous)
