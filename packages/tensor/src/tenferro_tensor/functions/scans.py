"""Cumulative sums and products, and differences, along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.direct import direct
from tenferro_tensor.functions import _line_forms
from tenferro_tensor.functions._span import span
from tenferro_tensor.functions.creation import full_like
from tenferro_tensor.functions.reductions import accumulated
from tenferro_tensor.identity import apart
from tenferro_tensor.operands import AlongOps, alike, axis_of, kept, value, whole
from tenferro_tensor_core import ArgumentError, dim_min

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["cumulative_prod", "cumulative_sum", "diff"]


def __dir__() -> list[str]:
    return __all__.copy()


DIFF_MAX_BYTES: Final = 1 << 21
"""Largest operand (in bytes) whose differences NumPy computes."""

SCAN_MAX_BYTES: Final = 1 << 14
"""Largest operand (in bytes) that NumPy scans if the result includes the initial element."""

_SUMS: Final = AlongOps("cumulative_sum", catalog.cumsum, reverse=False)
_PRODUCTS: Final = AlongOps("cumulative_prod", catalog.cumprod, reverse=False)


def _cumulative(ops: AlongOps, start: int, x: Any, axis: Any, dtype: Any, include: bool) -> Any:
    if not hasattr(x, "spec"):
        x = value(x)
    if dtype is not None or not x.spec.inexact:
        x = accumulated(x, dtype)
    if axis is None:
        if x.spec.ndim != 1:
            raise ArgumentError(
                f"{ops.name} needs an axis for an array with {x.spec.ndim} axes; pass axis=, or a vector (ravel)",
                ndim=x.spec.ndim,
            )
        axis = 0
    out = ops(x, axis)
    if not include:
        return out
    axis = axis_of(ops.name, axis, x.spec.ndim)
    edge = kept(catalog.reduce_any(catalog.ne(x, x), axes=(axis,)), x.spec, (axis,))
    return catalog.concatenate(full_like(edge, start, dtype=out.spec.dtype), out, axis=axis)


@direct(_line_forms.cumulative_sum, SCAN_MAX_BYTES)
def cumulative_sum(x: Any, /, axis: Any = None, *, dtype: Any = None, include_initial: bool = False) -> Array:
    """Cumulative sum along an axis.

    Args:
        x: array with at least one axis.
        axis: axis to accumulate along; may be left out for a vector.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.
        include_initial: prepend the empty sum, 0.

    Returns:
        Array of the shape of `x`; the axis is longer by 1 with `include_initial`.

    Raises:
        ArgumentError: the axis is left out, and `x` is not a vector.
        AxisError: the axis is out of range.

    See also:
        `cumsum`, which flattens by default.

    >>> tr.cumulative_sum(tr.asarray([1, 2, 3]), include_initial=True)
    Tensor([0, 1, 3, 6])
    """
    return _cumulative(_SUMS, 0, x, axis, dtype, include_initial)


@direct(_line_forms.cumulative_prod, SCAN_MAX_BYTES)
def cumulative_prod(x: Any, /, axis: Any = None, *, dtype: Any = None, include_initial: bool = False) -> Array:
    """Cumulative product along an axis.

    Args:
        x: array with at least one axis.
        axis: axis to accumulate along; may be left out for a vector.
        dtype: dtype of the result; by default that of `x`, int64 or uint64 for integers and booleans.
        include_initial: prepend the empty product, 1.

    Returns:
        Array of the shape of `x`; the axis is longer by 1 with `include_initial`.

    Raises:
        ArgumentError: the axis is left out, and `x` is not a vector.
        AxisError: the axis is out of range.

    See also:
        `cumprod`, which flattens by default.

    >>> tr.cumulative_prod(tr.asarray([1, 2, 3]))
    Tensor([1, 2, 6])
    """
    return _cumulative(_PRODUCTS, 1, x, axis, dtype, include_initial)


@direct(_line_forms.diff, DIFF_MAX_BYTES)
def diff(x: Any, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None) -> Array:
    """Differences of neighbouring elements along an axis; for booleans, whether they differ.

    Args:
        x: array with at least one axis.
        n: number of times to take differences.
        axis: axis to take differences along.
        prepend: array joined in front of `x` first.
        append: array joined after `x` first.

    Returns:
        Array whose axis is shorter by `n`.

    Raises:
        ArgumentError: `n` is negative.
        AxisError: the axis is out of range.

    >>> tr.diff(tr.asarray([1, 4, 9]))
    Tensor([3, 5])
    """
    n = whole("diff", "n", n)
    if n < 0:
        raise ArgumentError(f"diff takes differences n times, n at least 0, got {n}", n=n)
    given = x = value(x)
    axis = axis_of("diff", axis, x.spec.ndim)
    joined = [part for part in (prepend, x, append) if part is not None]
    if len(joined) > 1:
        x = catalog.concatenate(*alike(*joined), axis=axis)
    for _ in range(n):
        extent = x.spec.shape[axis]
        upper, lower = span(x, axis, dim_min(extent, 1), extent), span(x, axis, 0, _one_less(extent))
        x = catalog.ne(upper, lower) if x.spec.dtype.kind == "b" else catalog.sub(upper, lower)
    return apart(given, x)


def _one_less(extent: Any) -> Any:
    return extent - dim_min(extent, 1)
