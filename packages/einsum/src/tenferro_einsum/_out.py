"""Contractions into memory that the caller gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_runtime.extension import HOST, ArgumentError, ShapeError, Spec, Tensor
from tenferro_tensor.device_model import ContractionKernel


def target(out: Any, spec: Spec, operands: Sequence[Any]) -> Any:
    """The raw array of `out`, if it can take a result of the given spec.

    Raises:
        ArgumentError: it is no writeable array in main memory, or shares memory with an operand.
        ShapeError: it has another shape or dtype.
    """
    raw = out.data if out.__class__ is Tensor else out
    if not isinstance(raw, np.ndarray) or spec.place is not HOST:
        raise ArgumentError(
            f"einsum takes out= as a NumPy array, or a tensor that holds one, for operands in main memory; got a "
            f"{type(out).__name__}"
        )
    if raw.shape != spec.shape or raw.dtype != spec.dtype:
        raise ShapeError(f"einsum: out= is {raw.dtype.name}{list(raw.shape)}, but the result is {spec!r}")
    if not raw.flags.writeable:
        raise ArgumentError("einsum: out= is read-only; give an array that may be written to")
    if any(x.__class__ is not Tensor for x in operands):
        raise ArgumentError("einsum: out= takes results of plain tensors, not of traced or differentiated ones")
    if any(np.may_share_memory(raw, x.data) for x in operands):
        raise ArgumentError("einsum: out= shares memory with an operand; give an array of its own")
    return raw


def into(raw: Any, kernel: ContractionKernel | None, operands: Sequence[Any], otherwise: Callable[[], Any]) -> Tensor:
    """The result in a raw array: written there by an engine, or copied."""
    if kernel is not None:
        kernel(*[x.data for x in operands], out=raw)
        return Tensor.wrap(raw, Spec(raw.shape, raw.dtype))
    result = otherwise()
    np.copyto(raw, result.data)
    return Tensor.wrap(raw, result.spec)
