"""Operands of the functions of neural networks."""

from typing import Any

from tenferro_tensor import Array
from tenferro_tensor.operands import converted, value
from tenferro_tensor_core import DTypeError, inexact_of


def real_floating(name: str, x: Any) -> Array:
    """A real value; integers and booleans become float64."""
    x = value(x)
    if x.spec.cplx:
        raise DTypeError(f"{name} takes real numbers, got {x.spec!r}; take real(x) first")
    return floating(x)


def floating(x: Any) -> Array:
    """A value; integers and booleans become float64."""
    x = value(x)
    return converted(x, inexact_of(x.spec.dtype))
