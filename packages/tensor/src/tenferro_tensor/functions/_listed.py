"""Operands of the functions that take nested sequences as well, as NumPy's do."""

from typing import Any

from tenferro_tensor.functions.creation import asarray
from tenferro_tensor.operands import value


def listed(x: Any) -> Any:
    """`x` as a value; lists and tuples become arrays, and differentiated elements of them keep their derivatives."""
    return asarray(x) if isinstance(x, (list, tuple)) else value(x)
