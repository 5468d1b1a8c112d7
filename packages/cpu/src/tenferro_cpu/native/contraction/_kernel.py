"""The contraction kernel of the CPU: plans by strides, memory from the pool, one call of machine code."""

import threading
from collections import OrderedDict
from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.contraction._module import machine
from tenferro_cpu.native.contraction._plan import Plan, make
from tenferro_cpu.native.machine._jit import available
from tenferro_cpu.native.memory._pool import POOLED, pool
from tenferro_cpu.native.python._builtin import builtin
from tenferro_cpu.native.python._capi import symbols
from tenferro_cpu.native.python._layout import Layout
from tenferro_cpu.native.threads._threads import usable_cores
from tenferro_tensor.device_model import ContractionIR, ContractionKernel, StepReport
from tenferro_tensor_core import ArgumentError, ShapeError

PLANS: Final = 16
"""Plans that a kernel keeps, one for each way in which operands and result have lain in memory."""

CHARS: Final = "fdFD"
"""Dtypes that the engine is rendered for."""


def contraction(ir: ContractionIR) -> ContractionKernel | None:
    """The engine's kernel, or None for dtypes that it does not have and where there is no compiler."""
    if ir.dtype.char not in CHARS or not ir.dtype.isnative or not available() or symbols() is None:
        return None
    return CpuContraction(ir) if Layout.found() is not None else None


class CpuContraction(ContractionKernel):
    """A contraction on NumPy arrays with any strides; safe to call from many threads."""

    def __init__(self, ir: ContractionIR) -> None:
        self.ir = ir
        self._kind, self._define = machine(ir.dtype.char)
        self._plans: OrderedDict[Any, tuple[Plan, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._one = np.ones((), ir.dtype)
        self._shapes = tuple([tuple([ir.extents[x] for x in labels]) for labels in ir.operands])
        self._scalars = frozenset(number for number, shape in enumerate(self._shapes) if not shape)
        self._shape = tuple([ir.extents[x] for x in ir.output])
        self._result = self._maker(prod(self._shape) * ir.dtype.itemsize)

    def __call__(self, *raws: Any, out: Any = None) -> Any:
        """As the contract says.

        Raises:
            ArgumentError: `out` is no array that can be written to.
            ShapeError: operands or `out` have other shapes or dtypes than the IR says.
        """
        if self._scalars:  # NumPy gives numbers for arrays without axes
            raws = tuple([np.asarray(x) if number in self._scalars else x for number, x in enumerate(raws)])
        key: Any = tuple([x.strides for x in raws])
        if out is not None:
            if not isinstance(out, np.ndarray) or not out.flags.writeable:
                what = "one that cannot" if isinstance(out, np.ndarray) else type(out).__name__
                raise ArgumentError(f"out is an array that can be written to, got {what}")
            key = (key, out.strides)
        plan, run = self._plans.get(key) or self._plan(key, raws, out)
        result = self._result(self._shape, self.ir.dtype) if out is None else out
        arena = self._maker(plan.arena)(plan.arena, np.uint8) if plan.arena else self._one
        if not plan.orders:
            return run(*raws, arena, result, self._one)
        ir = self.ir
        shapes = [tuple([ir.extents[x] for x in labels]) for labels in plan.orders]
        kept = [self._maker(prod(shape) * ir.dtype.itemsize)(shape, ir.dtype) for shape in shapes]
        run(*raws, arena, result, *kept, self._one)
        places = [[labels.index(x) for x in ir.values[v]] for v, labels in zip(ir.kept, plan.orders, strict=True)]
        return (result, *[x.transpose(place) for x, place in zip(kept, places, strict=True)])

    def _plan(self, key: Any, raws: tuple[Any, ...], out: Any) -> tuple[Plan, Any]:
        given, wanted = (*raws, *([] if out is None else [out])), (*self._shapes, self._shape)
        for number, (x, shape) in enumerate(zip(given, wanted, strict=False)):
            if x.shape != shape or x.dtype != self.ir.dtype:
                what = f"operand {number}" if number < len(raws) else "out"
                raise ShapeError(
                    f"{what} of a contraction of {self.ir.dtype} has shape {x.shape} and dtype {x.dtype}; "
                    f"it was made for {shape}",
                    shape=x.shape,
                )
        if len(raws) != len(self._shapes):
            raise ShapeError(f"a contraction of {len(self._shapes)} operands got {len(raws)}")
        strides = None if out is None else out.strides
        plan = make(self._kind, self.ir, [x.strides for x in raws], strides, usable_cores())
        with self._lock:
            self._plans[key] = plan, builtin(self._define, plan.header)
            while len(self._plans) > PLANS:
                self._plans.popitem(last=False)
            return self._plans[key]

    @staticmethod
    def _maker(nbytes: int) -> Any:
        """What makes arrays of this size."""
        memory = pool() if nbytes >= POOLED else None
        return np.empty if memory is None else memory.empty

    @cached_property
    def _contiguous(self) -> Plan:
        strides = [np.empty(shape, self.ir.dtype).strides for shape in self._shapes]
        return make(self._kind, self.ir, strides, None, usable_cores())

    @property
    def peak_bytes(self) -> int:
        """As the contract says, for operands whose axes lie in order."""
        values = [self._shape, *[self.ir.shape(v) for v in self.ir.kept]]
        return self._contiguous.arena + sum([prod(shape) * self.ir.dtype.itemsize for shape in values])

    def report(self) -> tuple[StepReport, ...]:
        """As the contract says."""
        return self._contiguous.reports
