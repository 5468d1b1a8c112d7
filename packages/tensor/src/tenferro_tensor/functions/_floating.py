"""Operands of functions whose results are not integers."""

from collections.abc import Callable
from typing import Any

from tenferro_tensor.functions._listed import listed
from tenferro_tensor.operands import converted
from tenferro_tensor_core import float32, inexact_of


def floating(x: Any) -> Any:
    """`x` as a value, booleans and integers in float64."""
    x = listed(x)
    return x if x.spec.inexact else converted(x, inexact_of(x.spec.dtype))


def in_float32(f: Callable[..., Any], x: Any, *args: Any, **options: Any) -> Any:
    """`f` of a narrow array, with all of its steps in float32 and a single rounding at the end."""
    return converted(f(converted(x, float32), *args, **options), x.spec.dtype)
