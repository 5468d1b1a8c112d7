"""The text of StableHLO types, constants and attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from tenferro_tensor import Spec
from tenferro_tensor_core import UnsupportedError

_ELEMENT: Final = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8", "uint16": "ui16",
    "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
}  # fmt: skip


def tensor_type(spec: Spec) -> str:
    """Return the type of a value, for example ``tensor<2x3xf64>``.

    >>> tensor_type(Spec((2, 3), np.dtype("float64")))
    'tensor<2x3xf64>'
    """
    if spec.symbolic:
        raise UnsupportedError(
            f"StableHLO text needs fixed sizes, but a value has spec {spec!r}; trace the function with concrete shapes",
            spec=repr(spec),
        )
    return f"tensor<{''.join(f'{d}x' for d in spec.shape)}{_ELEMENT[spec.dtype.name]}>"


def dense(array: np.ndarray[Any, Any]) -> str:
    """Return the elements of a constant as raw little-endian bytes, which preserves every bit."""
    if array.size == 0:
        return "dense<>"
    if array.dtype == np.bool_:
        return f"dense<{_nested(array)}>"
    array = array.view(np.uint16) if array.dtype.kind == "V" else array
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return f'dense<"0x{little.tobytes().hex().upper()}">'


def _nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return "true" if array else "false"
    return f"[{', '.join(map(_nested, array))}]"


def i64s(values: Iterable[Any]) -> str:
    """Return an array attribute, ``array<i64: 1, 2>``."""
    items = list(values)
    return f"array<i64: {', '.join(map(str, items))}>" if items else "array<i64>"


def listed(values: Iterable[Any]) -> str:
    """Return a bracketed list, as in dimension numbers."""
    return f"[{', '.join(map(str, values))}]"
