"""Operands of functions whose results are not integers."""

from typing import Any

from tenferro_tensor.operands import converted, value
from tenferro_tensor_core import inexact_of


def floating(x: Any) -> Any:
    """`x` as a value, booleans and integers in float64."""
    x = value(x)
    return x if x.spec.inexact else converted(x, inexact_of(x.spec.dtype))
