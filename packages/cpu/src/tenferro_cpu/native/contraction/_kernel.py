"""The contraction kernel of the CPU: plans by strides, memory from the pool, one call of machine code."""

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from math import prod
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.contraction import tuning
from tenferro_cpu.native.contraction._bound import Bound
from tenferro_cpu.native.contraction._chains import folded
from tenferro_cpu.native.contraction._microkernels import microkernels
from tenferro_cpu.native.contraction._outputs import Outputs, maker
from tenferro_cpu.native.contraction._plan import make
from tenferro_cpu.native.contraction._report import Plan, reports
from tenferro_cpu.native.threads._team import team
from tenferro_cpu.native.threads._threads import usable_cores
from tenferro_tensor.device_model import ContractionGraph, ContractionIR, ContractionKernel, StepReport
from tenferro_tensor_core import ArgumentError, ShapeError
from tenferro_tensor_core.forks import cached_property, new_lock

PLANS_BOUND: Final = Bound(tuning.MAX_PLAN_BYTES)
"""Bound of the plans of all kernels."""

_strides_of = attrgetter("strides")

CHARS: Final = "fdFD"
"""Dtypes that the engine supports."""


def contraction(ir: ContractionIR | ContractionGraph) -> ContractionKernel | None:
    """The engine's kernel for a contraction.

    Args:
        ir: the contraction, or graph of contractions.

    Returns:
        The kernel, or None for other dtypes and without the C extension.
    """
    if ir.dtype.char not in CHARS or not ir.dtype.isnative or team() is None:
        return None
    return CpuContraction(ir)


class CpuContraction(ContractionKernel):
    """Contractions of NumPy arrays with any strides; thread-safe."""

    def __init__(self, ir: ContractionIR | ContractionGraph) -> None:
        self.ir = ir
        self._graph = graph = folded(ir if isinstance(ir, ContractionGraph) else ir.graph)
        self._several = len(graph.outputs) > 1 or isinstance(ir, ContractionGraph)
        self._code = microkernels(ir.dtype.char)
        self._plans: OrderedDict[Any, tuple[Plan, Any, Outputs]] = OrderedDict()
        self._lock = new_lock()
        self._small: list[Any] | None = None  # the plan that entries run directly, once there are entries
        self._shapes = tuple([graph.shape(number) for number in range(len(graph.operands))])
        self._scalars = [number for number, shape in enumerate(self._shapes) if not shape]
        self._made_first = bool(self._scalars or graph.conjugated)
        self._shape = graph.shape(graph.outputs[0])
        self._result = maker(prod(self._shape) * ir.dtype.itemsize)

    def __call__(self, *raws: Any, out: Any = None) -> Any:
        """See `ContractionKernel.__call__`.

        Callers guarantee the shapes and dtypes of operands: these are checked only for new layouts.

        Raises:
            ArgumentError: `out` is not a writable array.
            ShapeError: operands or `out` have shapes or dtypes other than those of the IR.
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
        arena = maker(plan.arena)(plan.arena, np.uint8) if plan.arena else result
        if not self._several:
            run(*raws, arena, result)
            return result if outputs.axes is None else result.transpose(outputs.axes)
        rest, blocks = outputs.make()
        run(*raws, arena, result, *rest)
        if self._graph.conjugated:
            for z in (result, *blocks):
                np.conjugate(z, z)
        first = result if outputs.axes is None else result.transpose(outputs.axes)
        return (first, *outputs.turned(rest))

    def _made(self, raws: tuple[Any, ...]) -> tuple[Any, ...]:
        """Convert numbers, which NumPy returns for 0-d arrays, to arrays; take conjugates where requested."""
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
        plan = make(self._code, self._graph, [x.strides for x in raws], strides, usable_cores())
        run = self._callable(plan, raws)
        with self._lock:
            outputs = Outputs(self._graph, plan.orders)
            if out is None and self._small is not None and outputs.axes is None and run.small:
                self._small[:] = [run]
            found = self._plans[key] = plan, run, outputs
            while len(self._plans) > tuning.MAX_PLANS:
                self._plans.popitem(last=False)
        PLANS_BOUND.note(self, plan.nbytes)
        return found

    def forget(self) -> None:
        """Release the plans, except that of the entries; running calls hold theirs."""
        with self._lock:
            self._plans.clear()

    def _callable(self, plan: Plan, raws: tuple[Any, ...]) -> Any:
        layout = array("q")
        for x in raws:
            layout.extend((x.ndim, *x.shape, *x.strides))
        layout.extend((len(self._shape), *self._shape))
        return compiled.ContractionPlan(
            self.ir.dtype, self._code.level, plan.keeps[0], plan.keeps, len(raws) + 1 + len(self._graph.outputs),
            plan.arena, plan.scratch, plan.shared, plan.unlocked, len(raws), layout,
        )  # fmt: skip

    def direct(self) -> Any:
        """A built-in function that runs small plans without Python."""
        if self.ir.flops > tuning.UNLOCKED_MIN_WORK or self._several or self._scalars or self._result is not np.empty:
            return self
        with self._lock:
            if self._small is None:
                self._small = []
        return compiled.contraction_entry(self, self._small)

    @cached_property
    def _contiguous(self) -> Plan:
        strides = [np.empty(shape, self.ir.dtype).strides for shape in self._shapes]
        return make(self._code, self._graph, strides, None, usable_cores())

    @property
    def peak_bytes(self) -> int:
        """See `ContractionKernel.peak_bytes`, for contiguous operands."""
        return self._contiguous.arena + self._result_bytes

    def peak_bytes_at(self, strides: Sequence[tuple[int, ...]]) -> int:
        """See `ContractionKernel.peak_bytes_at`."""
        return make(self._code, self._graph, strides, None, usable_cores()).arena + self._result_bytes

    @property
    def _result_bytes(self) -> int:
        """Bytes of all outputs, and of operands that are conjugated first."""
        made = (*range(self._graph.conjugated), *self._graph.outputs)
        return sum([prod(self._graph.shape(v)) * self.ir.dtype.itemsize for v in made])

    def report(self) -> tuple[StepReport, ...]:
        """See `ContractionKernel.report`."""
        return reports(self._code, self._graph, self._contiguous)
