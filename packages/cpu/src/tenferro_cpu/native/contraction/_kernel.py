"""The contraction kernel of the CPU: plans by strides, memory from the pool, one call of machine code."""

import threading
from collections import OrderedDict
from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._capi import symbols
from tenferro_cpu.native._jit import available
from tenferro_cpu.native._layout import Layout
from tenferro_cpu.native._pool import POOLED, pool
from tenferro_cpu.native._team import team
from tenferro_cpu.native._threads import usable_cores
from tenferro_cpu.native.contraction._module import machine
from tenferro_cpu.native.contraction._plan import Plan, make
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
        self._kind, self._run = machine(ir.dtype.char)
        self._plans: OrderedDict[Any, Plan] = OrderedDict()
        self._lock = threading.Lock()
        self._one = np.ones((), ir.dtype)
        self._shapes = tuple([tuple([ir.extents[x] for x in labels]) for labels in ir.operands])
        self._scalars = frozenset(number for number, shape in enumerate(self._shapes) if not shape)
        self._shape = tuple([ir.extents[x] for x in ir.output])
        self._memory = pool()
        self._team = team()

    def __call__(self, *raws: Any, out: Any = None) -> Any:
        """As the contract says.

        Raises:
            ArgumentError: `out` is no array.
            ShapeError: operands or `out` have other shapes or dtypes than the IR says.
        """
        if out is not None and not isinstance(out, np.ndarray):
            raise ArgumentError(f"out is an array that can be written to, got {type(out).__name__}")
        if self._scalars:  # NumPy gives numbers for arrays without axes
            raws = tuple([np.asarray(x) if number in self._scalars else x for number, x in enumerate(raws)])
        plan = self._plans.get((tuple([x.strides for x in raws]), None if out is None else out.strides))
        if plan is None:
            plan = self._plan(raws, out)
        ir = self.ir
        result = self._empty(self._shape) if out is None else out
        kept = [self._empty([ir.extents[x] for x in labels]) for labels in plan.orders]
        arena = self._empty((plan.arena,), np.uint8) if plan.arena else self._one
        objects = (*raws, arena, result, *kept, self._one)
        threads = 1
        if plan.pieces > 1 and self._team is not None:
            threads = min(plan.pieces, self._team.threads)
        self._run(id(objects), plan.address, threads)
        if not kept:
            return result
        places = [
            [labels.index(x) for x in ir.values[v]] for v, labels in zip(ir.kept, plan.orders, strict=True)
        ]  # fmt: skip
        return (result, *[x.transpose(place) for x, place in zip(kept, places, strict=True)])

    def _plan(self, raws: tuple[Any, ...], out: Any) -> Plan:
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
        strides = tuple([x.strides for x in raws])
        key = (strides, None if out is None else out.strides)
        plan = make(self._kind, self.ir, *key, usable_cores())
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > PLANS:
                self._plans.popitem(last=False)
        return plan

    def _empty(self, shape: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
        kind = self.ir.dtype if dtype is None else np.dtype(dtype)
        if self._memory is not None and prod(shape) * kind.itemsize >= POOLED:
            return self._memory.empty(tuple(shape), kind)
        return np.empty(shape, kind)

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
