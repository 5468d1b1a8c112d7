"""Kernels of fused steps: op by op at first, then a kernel of the backend, compiled or loaded from disk."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime.fusion._primitive import fused
from tenferro_runtime.fusion._region import region_of
from tenferro_runtime.ir._inference import operand_specs
from tenferro_runtime.ir._program import Equation, Literal, Program
from tenferro_runtime.rendering._background import COMPILING
from tenferro_runtime.rendering._render import render_steps
from tenferro_runtime.rendering._step import Step
from tenferro_runtime.rendering._tiers import Tiered, build_all
from tenferro_tensor import REGISTRY, Op, Place, Spec, catalog, get_backend
from tenferro_tensor.device_model import Region
from tenferro_tensor.kernels import shapeless_kernel_of

KERNELS: BoundedCache[tuple[Region, Place], Tiered] = BoundedCache("tenferro_runtime: fused kernels", 4096)
"""Kernels by region and place, independent of sizes."""


def _make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, program: Program) -> Tiered:
    region, place = region_of(program), ins[0].place

    def made() -> Tiered:
        backend, first = get_backend(place.device.kind), _op_by_op(program, region, place)
        return Tiered(first, lambda: backend.fused(region, first, COMPILING.submit))

    return KERNELS.get_or_make((region, place), made)


_make.any_size = True  # type: ignore[attr-defined]


def _op_by_op(program: Program, region: Region, place: Place) -> Callable[..., Any]:
    """A function that runs the steps of a region one by one, for all sizes; element-wise kernels broadcast."""
    # Arbitrary extents: makers of element-wise ops and reductions depend on the rank only.
    extents = tuple(range(2, 2 + region.rank))
    steps: list[Step] = []
    alias: dict[int, Any] = {}
    fresh = max(program.specs) + 1
    for v, index in zip(program.input_ids, region.expansions(), strict=True):
        if index is not None:
            steps.append(Step(itemgetter(index), (v,), (fresh,), False, Equation(fused.op(program=program), (), ())))
            alias[v] = fresh
            fresh += 1
    for eq in program.equations:
        if eq.op.primitive is catalog.broadcast_in_dim:
            (v,) = eq.variables
            constant = program.constants.get(v)
            alias[eq.results[0]] = alias.get(v, v) if constant is None else Literal(constant._data.item())
            continue
        operands = tuple([alias.get(v, v) if v.__class__ is int else v for v in eq.operands])
        out = program.specs[eq.results[0]]
        run = _kernel(eq.op, _given(program, eq, extents), out, extents, region, place)
        steps.append(Step(run, operands, eq.results, False, Equation(eq.op, operands, eq.results)))
    return render_steps(program.input_ids, {}, steps, program.output_ids, bare=len(program.output_ids) == 1)


def _given(program: Program, eq: Equation, extents: tuple[int, ...]) -> tuple[Spec, ...]:
    seen = tuple([v.value.__class__ if isinstance(v, Literal) else program.specs[v] for v in eq.operands])
    return tuple([s.with_(shape=extents) for s in operand_specs(eq.op, seen)])


def _kernel(
    op: Op, ins: tuple[Spec, ...], out: Spec, extents: tuple[int, ...], region: Region, place: Place
) -> Callable[..., Any]:
    shape = (
        extents if op.primitive.elementwise else tuple([n for k, n in enumerate(extents) if k not in region.reduced])
    )
    return shapeless_kernel_of(get_backend(place.device.kind), op, ins, (out.with_(shape=shape),), place.device)


def wait() -> None:
    """Compile all known kernels, of fused steps and of whole programs, and wait for them.

    For tests and measurements, after the first run of a program.
    """
    build_all()
    COMPILING.drain()


def clear() -> None:
    """Drop the cached kernels; programs that are already prepared keep theirs."""
    KERNELS.clear()


def kernel_stats() -> dict[str, int]:
    """Number of fused kernels by state.

    Returns:
        Counts of ``"waiting"``, ``"queued"``, ``"native"`` and ``"op by op"``; the last two are final.
    """
    counts = dict.fromkeys(("waiting", "queued", "native", "op by op"), 0)
    for kernel in list(KERNELS.table.values()):
        counts[kernel.state] += 1
    return counts


REGISTRY.kernel(fused, "*", _make)
