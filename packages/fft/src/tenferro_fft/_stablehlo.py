"""Lowerings to StableHLO's ``fft``, which transforms the last axes and scales inverse transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from tenferro_fft._primitives import FORWARD, c2c, c2r, r2c
from tenferro_runtime.extension import Registry


def _transformed(e: Any, x: Any, kind: str, points: tuple[int, ...], out: Any) -> Any:
    lengths = ", ".join(map(str, points))
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {lengths}>"
    y = _row_major(e, e.op("fft", (x,), out, attributes), out)
    return e.op("multiply", (y, e.constant(math.prod(points), out)), out) if kind.startswith("I") else y


def _row_major(e: Any, x: Any, out: Any) -> Any:
    """Fix the layout: XLA's CPU transforms refuse the column-major one that decompositions ask of their operand."""
    order = ", ".join(map(str, reversed(range(out.ndim))))
    layouts = f"[dense<[{order}]> : tensor<{out.ndim}xindex>]"
    attributes = f'call_target_name = "LayoutConstraint", operand_layouts = {layouts}, result_layouts = {layouts}'
    return e.op("custom_call", (x,), out, attributes)


AXES_MAX: Final = 3
"""Maximum number of axes of one StableHLO ``fft``."""


def _last(ndim: int, axes: Sequence[int]) -> tuple[list[int], list[int]]:
    """The permutation that moves some axes to the end, and its inverse."""
    there = [a for a in range(ndim) if a not in axes] + sorted(axes)
    return there, [there.index(a) for a in range(ndim)]


def _over(e: Any, x: Any, axes: Sequence[int], kind: str, points: tuple[int, ...], out: Any) -> Any:
    there, back = _last(x.spec.ndim, axes)
    if there == back == sorted(there):
        return _transformed(e, x, kind, points, out)
    moved = out.with_(shape=tuple(out.shape[a] for a in there))
    return e.transpose(_transformed(e, e.transpose(x, there), kind, points, moved), back)


def _lower_c2c(e: Any, xs: Any, outs: Any, *, axes: tuple[int, ...], sign: int) -> Any:
    x = e.convert(xs[0], outs[0].dtype)
    left = sorted(axes)
    while left:  # trailing axes first, which need no transpose
        group, left = left[-AXES_MAX:], left[:-AXES_MAX]
        points = tuple([x.spec.shape[a] for a in group])
        x = _over(e, x, group, "FFT" if sign == FORWARD else "IFFT", points, x.spec)
    return x


def _lower_r2c(e: Any, xs: Any, outs: Any, *, axis: int) -> Any:
    return _over(e, xs[0], (axis,), "RFFT", (xs[0].spec.shape[axis],), outs[0])


def _lower_c2r(e: Any, xs: Any, outs: Any, *, axis: int, n: int) -> Any:
    return _over(e, xs[0], (axis,), "IRFFT", (n,), outs[0])


def register(registry: Registry) -> None:
    """Register the lowerings for ``tenferro_xla``."""
    registry.lowering(c2c, _lower_c2c)
    registry.lowering(r2c, _lower_r2c)
    registry.lowering(c2r, _lower_c2r)
