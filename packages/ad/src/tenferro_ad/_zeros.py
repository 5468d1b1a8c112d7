"""Zeros and ones; with symbolic sizes they are recorded as ops of the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_tensor import HOST, Primitive, Spec, Tensor, catalog


def full(spec: Spec, number: float) -> Any:
    """A constant array that stores one element."""
    if spec.place is HOST and not spec.shape:
        return Tensor.wrap(np.array(number, spec.dtype), spec)
    scalar = Primitive.adopt(number, dtype=spec.dtype, device=spec.place.device)
    return scalar if not spec.shape else catalog.broadcast_in_dim(scalar, shape=spec.shape, dims=())


def zeros_in(builder: Any, spec: Spec) -> Any:
    """Zeros as a value of a builder's program."""
    scalar = builder.constant(Primitive.adopt(0, dtype=spec.dtype, device=spec.place.device))
    return scalar if not spec.shape else catalog.broadcast_in_dim(scalar, shape=spec.shape, dims=())


def zeros_beside(x: Any, spec: Spec) -> Any:
    """Zeros as a value of the program that a traced value belongs to."""
    return zeros_in(x.home, spec)


def zeros_like(x: Any) -> Any:
    """Zeros with the spec of a value."""
    return full(x.spec, 0)


def ones_like(x: Any) -> Any:
    """Ones with the spec of a value."""
    return full(x.spec, 1)
