"""Contractions into the caller's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import HOST, ArgumentError, ShapeError, Spec, Tensor
from tenferro_tensor import Array
from tenferro_tensor.device_model import ContractionKernel
from tenferro_tensor.ownership import borrowed

OVERLAP_MAX_WORK: Final = 1000
"""Effort limit of the exact test whether two arrays share memory."""


def target(out: Any, spec: Spec, operands: Sequence[Any]) -> Any:
    """The array `out`, if it can take a result of the given spec.

    Raises:
        ArgumentError: `out` is not a writable array in main memory, or shares memory with an operand.
        ShapeError: `out` has another shape or dtype.
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
        raise ArgumentError("einsum: out= is read-only; pass a writable array")
    if _overlaps_itself(raw):
        raise ArgumentError("einsum: elements of out= share memory with each other; pass a newly allocated array")
    if any(x.__class__ is not Tensor for x in operands):
        raise ArgumentError("einsum: out= needs plain tensors as operands, not traced or differentiated ones")
    for n, x in enumerate(operands):
        if _share(raw, x._data):
            raise ArgumentError(f"einsum: out= shares memory with operand {n}; pass a separate array", operand=n)
    return raw


def _share(x: Any, y: Any) -> bool:
    """Whether arrays may have an element in common; undecided cases count as shared."""
    if not np.may_share_memory(x, y):
        return False
    try:
        return np.shares_memory(x, y, max_work=OVERLAP_MAX_WORK)  # type: ignore[arg-type]  # NumPy's stubs allow only -1 and 0
    except np.exceptions.TooHardError:
        return True


def _overlaps_itself(x: Any) -> bool:
    """Whether axes do not nest, i.e. the stride of one is within the reach of shorter ones; those of views nest."""
    reach = x.itemsize
    for stride, n in sorted((abs(stride), n) for stride, n in zip(x.strides, x.shape, strict=True) if n > 1):
        if stride < reach:
            return bool(x.size)
        reach += stride * (n - 1)
    return False


def into(raw: Any, kernel: ContractionKernel | None, operands: Sequence[Any], otherwise: Callable[[], Any]) -> Tensor:
    """The result as a tensor that borrows the caller's array: written by an engine, or copied."""
    if kernel is not None:
        kernel(*[x._data for x in operands], out=raw)
        return Tensor.wrap(borrowed(raw), Spec(raw.shape, raw.dtype))
    result = otherwise()
    np.copyto(raw, result._data)
    return Tensor.wrap(borrowed(raw), result.spec)
