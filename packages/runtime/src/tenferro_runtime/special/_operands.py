"""Operands of special functions."""

from __future__ import annotations

from typing import Any

from tenferro_runtime.nn._operands import real_floating

__all__ = ["is_complex", "real_floating"]


def is_complex(x: Any) -> bool:
    """Whether an operand is a complex number or an array of them."""
    if hasattr(x, "spec"):
        return bool(x.spec.cplx)
    return getattr(getattr(x, "dtype", None), "kind", "c" if isinstance(x, complex) else "") == "c"
