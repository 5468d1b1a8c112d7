"""Operands of functions whose results are not integers."""

from typing import Any

from tenferro_tensor.functions._listed import listed
from tenferro_tensor.operands import converted
from tenferro_tensor_core import inexact_of


def floating(x: Any) -> Any:
    """`x` as a value, booleans and integers in float64."""
    x = listed(x)
    return x if x.spec.inexact else converted(x, inexact_of(x.spec.dtype))
