"""Row kernels compiled ahead of time: arithmetic, comparisons and reductions of contiguous arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native._host import Host
from tenferro_cpu.native.kernels._forms import Access
from tenferro_tensor import Op, Primitive


def fixed_cost(moved: int) -> float:
    """Approximate nanoseconds per element, for `moved` bytes read and written."""
    return 0.03 + 0.02 * moved


def fixed_rows(primitive: Primitive, dtype: np.dtype[Any]) -> tuple[int, int, int] | None:
    """Addresses for two arrays, an array and a number, a number and an array; 0 if there is none."""
    if compiled is None or dtype.kind == "b" or not primitive.in_house:
        return None  # booleans have different arithmetic
    found: tuple[int, int, int] | None = compiled.ROWS.get(f"{primitive.name} {_type(dtype)}")
    return found


def fixed_reduction(
    kind: str, dtype: np.dtype[Any], host: Host | None = None, *, fastest: bool = True
) -> tuple[int, int] | None:
    """Addresses of a reduction over the trailing and the leading axis.

    Args:
        kind: the reduction.
        dtype: dtype of the elements.
        host: the target; by default this processor.
        fastest: whether to return only code that is fastest.
    """
    if compiled is None or (host is not None and compiled.LEVEL != host.level):
        return None
    if fastest and kind in ("max", "min") and dtype.kind == "f":
        return None  # generated code for extremes of floating-point numbers is up to a fifth faster
    found: tuple[int, int] | None = compiled.REDUCTIONS.get(f"{kind} {_type(dtype, signed=kind in ('sum', 'prod'))}")
    return found


def fixed_row(op: Op, dtypes: Sequence[np.dtype[Any]], accesses: Sequence[Access], host: Host) -> int:
    """Address of an op along a row that needs no compiler, or 0.

    Args:
        op: the op.
        dtypes: dtypes of its operands.
        accesses: accesses of its operands and of the result.
        host: the target; fixed code exists for only one vector level of a process.
    """
    if compiled is None or compiled.LEVEL != host.level or len({*dtypes}) != 1:
        return 0
    form = FORMS.get(tuple(accesses))
    rows = None if form is None else fixed_rows(op.primitive, dtypes[0])
    return 0 if rows is None or form is None else rows[form]


FORMS: Final = {
    (Access.UNIT, Access.UNIT): 0,
    (Access.UNIT, Access.UNIT, Access.UNIT): 0,
    (Access.UNIT, Access.FIXED, Access.UNIT): 1,
    (Access.FIXED, Access.UNIT, Access.UNIT): 2,
}
"""The place among `fixed_rows` of each combination of accesses of operands and result."""


def _type(dtype: np.dtype[Any], *, signed: bool = False) -> str:
    """Name of a type, such as ``"f64"``; booleans are bytes, and sums ignore the sign of integers."""
    letter = {"b": "u", "u": "i" if signed else "u"}.get(dtype.kind, dtype.kind)
    return f"{letter}{8 * dtype.itemsize}"
