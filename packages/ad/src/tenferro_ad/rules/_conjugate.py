"""Complex conjugation of factors of cotangents."""

from __future__ import annotations

from typing import Any

from tenferro_tensor import catalog as c


def conjugate(x: Any) -> Any:
    """The complex conjugate; a real value is returned unchanged, without an op."""
    return c.conj(x) if x.spec.cplx else x
