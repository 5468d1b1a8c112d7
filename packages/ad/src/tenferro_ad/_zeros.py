"""Zeros and ones like a value, which join a trace where its extents are symbolic."""

from __future__ import annotations

from typing import Any

from tenferro_tensor import Spec, catalog, tensor


def full(spec: Spec, number: float) -> Any:
    """A constant array of a concrete spec; one element is stored."""
    scalar = tensor(number, dtype=spec.dtype, device=spec.place.device)
    return scalar if not spec.shape else catalog.broadcast_in_dim(scalar, shape=spec.shape, dims=())


def zeros_like(x: Any) -> Any:
    """Zeros with the spec of a value."""
    spec = x.spec
    if spec.symbolic:
        # The extents belong to the trace of `x`, so the zeros are computed from it; `<` is False for NaN too.
        part = catalog.real(x)
        return catalog.convert(catalog.lt(part, part), dtype=spec.dtype)
    return full(spec, 0)


def ones_like(x: Any) -> Any:
    """Ones with the spec of a value."""
    return zeros_like(x) + 1 if x.spec.symbolic else full(x.spec, 1)
