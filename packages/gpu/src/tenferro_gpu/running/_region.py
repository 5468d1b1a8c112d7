"""Regions of programs as functions of arrays of a device: one kernel for each way in which operands lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from tenferro_gpu.rendering import CudaRenderer
from tenferro_gpu.running._launch import SINGLE_ITEM_MAX_ELEMENTS, launch_of, over_of
from tenferro_gpu.running._layout import Ints, IterationSpace, laid
from tenferro_gpu.running._program import GpuProgram
from tenferro_tensor.device_model import (
    Access,
    CompileError,
    KernelIR,
    Later,
    Operand,
    Over,
    Reduction,
    Region,
    in_rows,
)
from tenferro_tensor_core.forks import new_lock

MAX_LAUNCH_PLANS: Final = 256
"""Most launch plans that a region keeps, by shapes and strides; then the cache is cleared."""


class Target(Protocol):
    """The operations that a region uses of the devices of a kind."""

    def program(self, kernel: KernelIR, renderer: CudaRenderer) -> GpuProgram:
        """The compiled kernel; may take as long as a compiler does."""

    def empty(self, shape: Ints, dtype: np.dtype[Any]) -> Any:
        """An array on the current device."""

    def start(self, run: Callable[[int, Sequence[Any]], Any], raws: Sequence[Any]) -> Any:
        """Call a function with the number of the device of the arrays, and the arrays, with that device current."""


class LaunchPlan(NamedTuple):
    """How a region runs on operands of some shapes and strides.

    Attributes:
        program: the kernel.
        groups, numbers: arguments of its launch.
        shape: of the results.
        join: joins the parts of each result, where there are several.
        parts: how many.
    """

    program: GpuProgram
    groups: int
    numbers: Ints
    shape: Ints
    join: LaunchPlan | None = None
    parts: int = 1


class RegionKernel:
    """The region for arrays of any layout; what is not compiled yet is left to the fallback, and compiled.

    Args:
        region: what to compute, its kernel one that the renderer takes.
        target: where.
        fallback: computes the same op by op, for calls that nothing is ready for.
        later: has the missing kernel compiled in the background.
    """

    def __init__(self, region: Region, target: Target, fallback: Callable[..., Any], later: Later) -> None:
        self.region, self.target, self.fallback, self.later = region, target, fallback, later
        self.dtypes = tuple([o.dtype for o in region.kernel.written])
        self._plans: dict[Any, LaunchPlan] = {}
        self._programs: dict[Any, GpuProgram | None] = {}
        self._asked: set[Any] = set()
        self._lock = new_lock()
        # Operands without gaps are what most calls bring, and reductions of more than a few elements.
        shapes = [tuple([2 * SINGLE_ITEM_MAX_ELEMENTS + a for a in axes]) for axes in region.axes]
        strides = [tuple([prod(shape[a + 1 :]) for a in range(len(shape))]) for shape in shapes]
        self.compile(*self._variants(self._layout(shapes, strides)))

    def __call__(self, *raws: Any) -> Any:
        key = tuple([(x.shape, x.strides) for x in raws])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(raws)
            if plan is None:
                return self.fallback(*raws)
            if len(self._plans) >= MAX_LAUNCH_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        results = self.target.start(lambda device, raws: self._run(plan, device, raws), raws)
        return results[0] if len(results) == 1 else results

    def _run(self, plan: LaunchPlan, device: int, raws: Sequence[Any]) -> tuple[Any, ...]:
        shape = plan.shape if plan.join is None else (prod(plan.shape), plan.parts)
        results = tuple([self.target.empty(shape, dtype) for dtype in self.dtypes])
        plan.program.launch(device, plan.groups, (*raws, *results), plan.numbers)
        return results if plan.join is None else self._run(plan.join, device, results)

    def _plan(self, raws: Sequence[Any]) -> LaunchPlan | None:
        """The plan for operands, or None where the fallback serves: nothing to compute, or a kernel that is missing."""
        if self.region.ordered and not all(map(in_rows, raws)):
            return None
        if any(x.size == 0 or any(s % x.itemsize for s in x.strides) for x in raws):
            return None
        layout = self._layout([x.shape for x in raws], [tuple([s // x.itemsize for s in x.strides]) for x in raws])
        variants = self._variants(layout)
        programs = [self._programs.get(v) for v in variants]
        missing = [v for v, program in zip(variants, programs) if program is None and v not in self._programs]
        if missing:
            with self._lock:
                missing = [v for v in missing if v not in self._asked]
                self._asked.update(missing)
            if missing:
                self.later(lambda: self.compile(*missing))
            return None
        program, *rest = programs
        if program is None or None in rest:
            return None
        launch = launch_of(layout, program.over)
        stay = [n for a, n in enumerate(self._extents([x.shape for x in raws])) if a not in self.region.reduced]
        plan = LaunchPlan(program, launch.groups, launch.numbers, tuple(stay), None, launch.parts)
        if launch.parts == 1:
            return plan
        (join,) = rest
        assert join is not None
        last = launch_of(self._joined(prod(layout.kept), launch.parts), join.over)
        return plan._replace(join=LaunchPlan(join, last.groups, last.numbers, tuple(stay)))

    def _extents(self, shapes: Sequence[Ints]) -> Ints:
        found = [1] * self.region.rank
        for shape, axes in zip(shapes, self.region.axes):
            for axis, extent in zip(axes, shape):
                found[axis] = extent if found[axis] == 1 else found[axis]
        return tuple(found)

    def _layout(self, shapes: Sequence[Ints], strides: Sequence[Ints]) -> IterationSpace:
        full = []
        for shape, own, axes in zip(shapes, strides, self.region.axes):
            over = [0] * self.region.rank
            for axis, n, s in zip(axes, shape, own):
                over[axis] = 0 if n == 1 else s
            full.append(tuple(over))
        return laid(self._extents(shapes), full, self.region.reduced)

    def _joined(self, rows: int, parts: int) -> IterationSpace:
        return laid((rows, parts), ((parts, 1),) * len(self.dtypes), (1,))

    def _variants(self, layout: IterationSpace) -> list[Any]:
        """The texts that a layout takes: of the kernel, and of the one that joins parts."""
        if self.region.kernel.reduction is None:
            return [(layout.variant, None, False)]
        over = over_of(layout)
        parts = launch_of(layout, over).parts
        found = [(layout.variant, over, False)]
        if parts > 1:
            found.append((self._joined(prod(layout.kept), parts).variant, Over.TRAILING, True))
        return found

    def compile(self, *variants: Any) -> None:
        """Render and compile texts."""
        for variant in variants:
            (rank, reduced, accesses, wide), over, joins = variant
            kernel = self.region.kernel
            if joins:
                kernel = _joining(kernel)
            inputs = tuple([Operand(o.dtype, access) for o, access in zip(kernel.inputs, accesses)])
            if over is not None:
                assert kernel.reduction is not None
                kernel = replace(kernel, reduction=Reduction(kernel.reduction.kind, over))
            try:
                renderer = CudaRenderer(rank, reduced, wide)
                made: GpuProgram | None = self.target.program(replace(kernel, inputs=inputs), renderer)
            except CompileError:
                self._programs[variant] = None  # the fallback serves
                raise
            self._programs[variant] = made


def _joining(kernel: KernelIR) -> KernelIR:
    """The kernel that reduces the parts of each output."""
    count = len(kernel.outputs)
    inputs = tuple([Operand(o.dtype, Access.UNIT) for o in kernel.written])
    return KernelIR(inputs, (), tuple(range(count)), reduction=kernel.reduction)
