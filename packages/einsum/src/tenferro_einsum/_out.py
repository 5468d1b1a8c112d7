"""Contractions into memory that the caller gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import HOST, ArgumentError, ShapeError, Spec, Tensor
from tenferro_tensor import Array
from tenferro_tensor.device_model import ContractionKernel
from tenferro_tensor.ownership import borrowed

OVERLAP_MAX_WORK: Final = 1000
"""Effort for the question whether two arrays share memory, which has no bound."""


def target(out: Any, spec: Spec, operands: Sequence[Any]) -> Any:
    """The array `out`, if it can take a result of the given spec.

    Raises:
        ArgumentError: it is no writeable array in main memory, or shares memory with an operand.
        ShapeError: it has another shape or dtype.
    """
    if isinstance(out, Array):
        raise ArgumentError(
            "einsum takes out= as a NumPy array, got a tensor, which is immutable; pass np.empty(shape, dtype), and "
            "use the tensor that the call returns"
        )
    raw = out
    if not isinstance(raw, np.ndarray) or spec.place is not HOST:
        raise ArgumentError(
            f"einsum takes out= as a NumPy array, for operands in main memory; got a {type(out).__name__}"
        )
    if raw.shape != spec.shape or raw.dtype != spec.dtype:
        name = raw.dtype.name if raw.dtype.isnative else f"byte-swapped {raw.dtype.name}"
        raise ShapeError(f"einsum: out= is {name}{list(raw.shape)}, but the result is {spec!r}")
    if not raw.flags.writeable:
        raise ArgumentError("einsum: out= is read-only; give an array that may be written to")
    if _overlaps_itself(raw):
        raise ArgumentError("einsum: elements of out= share memory with each other; give an array of its own")
    if any(x.__class__ is not Tensor for x in operands):
        raise ArgumentError("einsum: out= takes results of plain tensors, not of traced or differentiated ones")
    for n, x in enumerate(operands):
        if _share(raw, x._data):
            raise ArgumentError(f"einsum: out= shares memory with operand {n}; give an array of its own", operand=n)
    return raw


def _share(x: Any, y: Any) -> bool:
    """Whether arrays have an element in common; what is too hard to tell counts as shared."""
    if not np.may_share_memory(x, y):
        return False
    try:
        return np.shares_memory(x, y, max_work=OVERLAP_MAX_WORK)  # type: ignore[arg-type]  # NumPy's stubs know -1 and 0 only
    except np.exceptions.TooHardError:
        return True


def _overlaps_itself(x: Any) -> bool:
    """Whether axes do not nest: each step of one beyond all that the shorter ones reach. Views of arrays do."""
    reach = x.itemsize
    for stride, n in sorted((abs(stride), n) for stride, n in zip(x.strides, x.shape, strict=True) if n > 1):
        if stride < reach:
            return bool(x.size)
        reach += stride * (n - 1)
    return False


def into(raw: Any, kernel: ContractionKernel | None, operands: Sequence[Any], otherwise: Callable[[], Any]) -> Tensor:
    """The result in an array of the caller's, which the tensor borrows: written there by an engine, or copied."""
    if kernel is not None:
        kernel(*[x._data for x in operands], out=raw)
        return Tensor.wrap(borrowed(raw), Spec(raw.shape, raw.dtype))
    result = otherwise()
    np.copyto(raw, result._data)
    return Tensor.wrap(borrowed(raw), result.spec)
