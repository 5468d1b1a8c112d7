"""Sparsity rules of the transforms: each element depends on all elements along the transformed axes."""

from typing import Any

from tenferro_fft._primitives import c2c, c2r, r2c
from tenferro_fft._trigonometric import trigonometric
from tenferro_runtime.extension import IndexMap, Registry, SparsityStep, index_map


def _along(axes: Any, step: SparsityStep) -> tuple[tuple[tuple[IndexMap]]]:
    (x,), (out,) = step.ins, step.outs
    names = [("operand", a) if a in axes else a for a in range(x.ndim)]
    return (((index_map(range(out.ndim), names, out, x),),),)


def _over_axes(step: SparsityStep) -> tuple[tuple[tuple[IndexMap]]]:
    return _along(step.op.params["axes"], step)


def _over_axis(step: SparsityStep) -> tuple[tuple[tuple[IndexMap]]]:
    return _along((step.op.params["axis"],), step)


def register(registry: Registry) -> None:
    """Register the rules."""
    registry.sparsity(c2c, _over_axes)
    registry.sparsity(trigonometric, _over_axes)
    registry.sparsity(r2c, _over_axis)
    registry.sparsity(c2r, _over_axis)
