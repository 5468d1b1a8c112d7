"""Regions of programs as functions of arrays of a device: a kernel for each layout of the operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple

from tenferro_gpu.rendering import Sharing, kernel_function
from tenferro_gpu.running._layout import Ints, IterationSpace, laid
from tenferro_gpu.whole import FEW_ROWS, MIN_PART, KernelSequence, KernelTarget
from tenferro_tensor.device_model import CompileError, Later, Region, in_rows
from tenferro_tensor_core import DimLike, dim
from tenferro_tensor_core.forks import new_lock

MAX_LAUNCH_PLANS: Final = 256
"""Maximum launch plans per region, by shapes and strides; a full cache is cleared."""

MAX_ITEM_TERMS: Final = 32
"""Reductions of at most this many elements per result use one work item; a group would mostly wait."""


class LaunchPlan(NamedTuple):
    """How a region runs on operands with given shapes and strides.

    Attributes:
        sequence: the kernels.
        values: extents and strides that they take.
        shape: shape of the results.
    """

    sequence: KernelSequence
    values: Ints
    shape: Ints


class Variant(NamedTuple):
    """The features on which the text of kernels depends.

    Attributes:
        rank: number of axes, for a reduction of the kept ones.
        reduced: number of reduced axes.
        strides: for each operand, those that are 0 or 1; None for all others, which are arguments.
        sharing: which work items run a reduction, if the extents determine it.
    """

    rank: int
    reduced: int
    strides: tuple[tuple[int | None, ...], ...]
    sharing: Sharing | None


class RegionKernel:
    """The region for arrays of any layout; missing kernels are compiled in the background while the fallback runs.

    Methods take:
        variant: the variant to compile.

    Args:
        region: what to compute, with a kernel that the renderer supports.
        target: the devices.
        fallback: computes the same op by op, for calls without a compiled kernel.
        later: queues compilations in the background.
    """

    def __init__(self, region: Region, target: KernelTarget, fallback: Callable[..., Any], later: Later) -> None:
        self.region: Region = region
        self.target: KernelTarget = target
        self.fallback: Callable[..., Any] = fallback
        self.later: Later = later
        self.dtypes: tuple[Any, ...] = tuple([o.dtype for o in region.kernel.written])
        self._plans: dict[Any, LaunchPlan] = {}
        self._sequences: dict[Variant, KernelSequence | None] = {}
        self._asked: set[Variant] = set()
        self._lock = new_lock()
        # Most calls have contiguous operands, and reductions of more than a few elements.
        shapes = [tuple([FEW_ROWS + MAX_ITEM_TERMS + a for a in axes]) for axes in region.axes]
        strides = [tuple([prod(shape[a + 1 :]) for a in range(len(shape))]) for shape in shapes]
        self.compile(_variant(self._layout(shapes, strides)))

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
        results = tuple([self.target.empty(plan.shape, dtype) for dtype in self.dtypes])
        plan.sequence.into(device, plan.values, raws, results)
        return results

    def _plan(self, raws: Sequence[Any]) -> LaunchPlan | None:
        """The plan for operands, or None if the fallback runs: nothing to compute, or a missing kernel."""
        if self.region.ordered and not all(map(in_rows, raws)):
            return None
        if any(x.size == 0 or any(s % x.itemsize for s in x.strides) for x in raws):
            return None
        layout = self._layout([x.shape for x in raws], [tuple([s // x.itemsize for s in x.strides]) for x in raws])
        variant = _variant(layout)
        sequence = self._sequences.get(variant)
        if sequence is None:
            self._ask(variant)
            return None
        given = [s for own in layout.strides for s in own if s not in (0, 1)]
        shape = [n for a, n in enumerate(self._extents([x.shape for x in raws])) if a not in self.region.reduced]
        return LaunchPlan(sequence, (*layout.kept, *layout.reduced, *given), tuple(shape))

    def _ask(self, variant: Variant) -> None:
        """Request compilation, unless that was done or failed."""
        with self._lock:
            if variant in self._asked or variant in self._sequences:
                return
            self._asked.add(variant)
        self.later(lambda: self.compile(variant))

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

    def compile(self, variant: Variant) -> None:
        """Render and compile kernels."""
        strides: list[list[DimLike]] = [
            [dim(f"s{k}_{a}") if s is None else s for a, s in enumerate(own)] for k, own in enumerate(variant.strides)
        ]
        function = kernel_function(self.region.kernel, variant.rank, variant.reduced, strides)
        try:
            self._sequences[variant] = KernelSequence(function, self.target, sharing=variant.sharing)
        except CompileError:
            self._sequences[variant] = None  # the fallback runs
            raise


def _variant(layout: IterationSpace) -> Variant:
    known = tuple([tuple([s if s in (0, 1) else None for s in own]) for own in layout.strides])
    return Variant(len(layout.kept), len(layout.reduced), known, _sharing(layout))


def _sharing(layout: IterationSpace) -> Sharing | None:
    """Which work items run a reduction, as far as the extents determine it."""
    rows, terms = prod(layout.kept), prod(layout.reduced)
    if not layout.reduced or (terms > MAX_ITEM_TERMS and layout.kept and (rows >= FEW_ROWS or terms < 2 * MIN_PART)):
        return None
    if not layout.kept:
        return Sharing.ONE if terms < 2 * MIN_PART else Sharing.PARTS
    return Sharing.ITEMS if terms <= MAX_ITEM_TERMS else Sharing.PARTS
