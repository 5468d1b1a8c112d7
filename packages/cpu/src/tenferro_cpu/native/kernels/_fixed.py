"""Row kernels compiled ahead of time: arithmetic, comparisons and reductions of contiguous arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native.machine._host import Host
from tenferro_tensor import Primitive
from tenferro_tensor.device_model import Access, Apply, KernelIR, Over


def fixed_cost(moved: int) -> float:
    """Approximate nanoseconds per element, for `moved` bytes read and written."""
    return 0.03 + 0.02 * moved


def fixed_rows(primitive: Primitive, dtype: np.dtype[Any]) -> tuple[int, int, int] | None:
    """Addresses for two arrays, an array and a number, a number and an array; 0 if there is none."""
    if compiled is None or dtype.kind == "b" or not primitive.in_house:
        return None  # booleans have different arithmetic
    found: tuple[int, int, int] | None = compiled.ROWS.get(f"{primitive.name} {_type(dtype)}")
    return found


def fixed_reduction(kind: str, dtype: np.dtype[Any], *, fastest: bool = True) -> tuple[int, int] | None:
    """Addresses of a reduction over the trailing and the leading axis; with `fastest`, only if they are fastest."""
    if compiled is None or (fastest and kind in ("max", "min") and dtype.kind == "f"):
        return None  # generated code for extremes of floating-point numbers is up to a fifth faster
    found: tuple[int, int] | None = compiled.REDUCTIONS.get(f"{kind} {_type(dtype, signed=kind in ('sum', 'prod'))}")
    return found


def fixed_row(kernel: KernelIR, host: Host) -> int:
    """Address of a kernel that needs no compiler, or 0.

    Args:
        kernel: the kernel, with the accesses along a row.
        host: the target; fixed code exists for only one vector level of a process.
    """
    if compiled is None or compiled.LEVEL != host.level:
        return 0
    reads, outputs = tuple([o.access for o in kernel.inputs]), (len(kernel.inputs) + len(kernel.lines) - 1,)
    if reads not in _FORMS or kernel.writes != (Access.UNIT,) or kernel.outputs != outputs:
        return 0
    dtype = kernel.inputs[0].dtype
    if kernel.reduction is not None:
        reducing = None if kernel.lines or reads != (Access.UNIT,) else fixed_reduction(kernel.reduction.kind, dtype)
        return 0 if reducing is None else reducing[kernel.reduction.over is Over.LEADING]
    if len(kernel.lines) != 1 or any(o.dtype != dtype for o in kernel.inputs):
        return 0
    (line,) = kernel.lines
    plain = isinstance(line, Apply) and line.args == tuple(range(len(reads)))
    rows = fixed_rows(line.op.primitive, dtype) if plain else None  # type: ignore[union-attr]
    return 0 if rows is None else rows[_FORMS[reads]]


_FORMS: Final = {
    (Access.UNIT,): 0,
    (Access.UNIT, Access.UNIT): 0,
    (Access.UNIT, Access.FIXED): 1,
    (Access.FIXED, Access.UNIT): 2,
}


def _type(dtype: np.dtype[Any], *, signed: bool = False) -> str:
    """Name of a type, such as ``"f64"``; booleans are bytes, and sums ignore the sign of integers."""
    letter = {"b": "u", "u": "i" if signed else "u"}.get(dtype.kind, dtype.kind)
    return f"{letter}{8 * dtype.itemsize}"
