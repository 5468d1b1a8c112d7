"""Complex conjugation of what multiplies a cotangent."""

from __future__ import annotations

from typing import Any

from tenferro_tensor import catalog as c


def conjugate(x: Any) -> Any:
    """The complex conjugate; a real value is left alone, so that no step is spent on it."""
    return c.conj(x) if x.spec.cplx else x
