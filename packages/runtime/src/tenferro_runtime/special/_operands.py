"""Operands of special functions."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from tenferro_runtime.nn._operands import real_floating
from tenferro_tensor import catalog

__all__ = ["both", "counted", "is_complex", "probable", "real_floating", "within"]


def is_complex(x: Any) -> bool:
    """Whether an operand is a complex number or an array of them."""
    if hasattr(x, "spec"):
        return bool(x.spec.cplx)
    return getattr(getattr(x, "dtype", None), "kind", "c" if isinstance(x, complex) else "") == "c"


def counted(name: str, x: Any) -> Any:
    """A number of things, rounded towards 0 as SciPy does."""
    return catalog.trunc(real_floating(name, x))


def both(*conditions: Any) -> Any:
    """Whether all conditions hold."""
    return reduce(catalog.bitwise_and, conditions)


def probable(p: Any) -> Any:
    """Whether `p` is a probability; false for NaN."""
    return both(catalog.ge(p, 0), catalog.le(p, 1))


def within(inside: Any, found: Any) -> Any:
    """`found` inside of the domain of a function, NaN outside."""
    return catalog.select(inside, found, math.nan)
