"""Conversion of operands to floating point."""

from collections.abc import Callable
from typing import Any

from tenferro_tensor.functions._listed import listed
from tenferro_tensor.operands import converted
from tenferro_tensor_core import float32, inexact_of


def floating(x: Any) -> Any:
    """`x` as a value; booleans and integers are converted to float64."""
    x = listed(x)
    return x if x.spec.inexact else converted(x, inexact_of(x.spec.dtype))


def in_float32(f: Callable[..., Any], x: Any, *args: Any, **options: Any) -> Any:
    """Apply `f` to a narrow array in float32, with a single rounding at the end."""
    return converted(f(converted(x, float32), *args, **options), x.spec.dtype)
