"""Operands of functions that also take nested sequences, like NumPy's functions."""

from typing import Any

from tenferro_tensor.functions.creation import asarray
from tenferro_tensor.functions.placement import to_device
from tenferro_tensor.operands import value


def listed(x: Any) -> Any:
    """`x` as a value; lists and tuples become arrays, and their differentiated elements keep their derivatives."""
    return asarray(x) if isinstance(x, (list, tuple)) else value(x)


def listed_beside(given: Any, x: Any) -> Any:
    """An operand next to a value `x`: lists, tuples and numbers are created at the place of `x`."""
    if hasattr(given, "spec") or x.spec.place.on_host:
        return listed(given)
    return to_device(listed(given), x.spec.place.device)
