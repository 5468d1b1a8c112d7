"""Operands of special functions."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from tenferro_runtime.nn._operands import real_floating
from tenferro_tensor import catalog
from tenferro_tensor.functions import asarray
from tenferro_tensor_core import DTypeError, kind_of

__all__ = ["both", "counted", "degree", "is_complex", "probable", "real_floating", "within"]


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


def degree(function: str, name: str, n: Any, x: Any) -> Any:
    """An integer operand in the dtype of `x`, which has no derivative.

    Raises:
        DTypeError: it is not an integer.
    """
    if isinstance(n, int):
        return n
    n = asarray(n)
    if n.dtype.kind not in "iu":
        raise DTypeError(
            f"{function} is defined for integers {name} only, and has no derivative by it; got {n.dtype}; "
            "convert it with astype(int)",
            dtype=str(n.dtype),
            operand=name,
        )
    dtype = getattr(x, "dtype", None)
    return n.astype(dtype) if dtype is not None and kind_of(dtype) == "f" else n
