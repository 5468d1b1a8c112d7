"""The library function of each primitive by kinds of dtypes, and the C form of dtypes and numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tenferro_tensor import Op, Primitive, catalog
from tenferro_tensor.catalog import analytic, arithmetic, numbers
from tenferro_tensor.loop_ir import WRITTEN_OUT, Literal
from tenferro_tensor_core import is_narrow

TYPES: Final[dict[str, str]] = {
    "bool": "bool",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
    "float16": "tf_f2", "bfloat16": "tf_b2", "float32": "float", "float64": "double",
    "complex64": "tf_c8", "complex128": "tf_c16",
}  # fmt: skip
"""C type of each dtype."""

_WRITTEN_OUT: Final = "kernels write it out (`loop_ir.expansion`); CuPy's serves one by one"
_BITS: Final = "narrow floats are moved as their bits; CuPy's function serves one by one"
_NEGATIVE: Final = "a negative exponent is an error, which a kernel cannot raise; known powers are written out"

RESERVED: Final[dict[Primitive, dict[str, str]]] = {
    arithmetic.pow: {"iu": _NEGATIVE},
    **{p: {"f": _WRITTEN_OUT} for p in WRITTEN_OUT - {analytic.lgamma}},
    arithmetic.nextafter: {"n": _BITS},
    numbers.imag: {"n": _BITS},
}
"""Kinds of dtypes without a function on purpose, and the reason."""

KINDS: Final[dict[Primitive, str]] = {
    p: "".join([kind for kind in p.kinds if kind not in "".join(RESERVED.get(p, {}))])
    for p in vars(catalog).values()
    if isinstance(p, Primitive) and p.elementwise
}
"""Kinds of dtypes for which the function ``tf_<name>`` of the library is the primitive."""

_RENAMED: Final = {numbers.complex: "tf_complex_of"}


def rendered(primitive: Primitive, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Whether the library has the primitive for operands of these dtypes.

    Args:
        primitive: the primitive.
        dtypes: dtypes of its operands.

    Returns:
        The flag.
    """
    ruled = next((d for i, d in enumerate(dtypes) if i != primitive.chooser), None)
    return ruled is not None and ("n" if is_narrow(ruled) else ruled.kind) in KINDS.get(primitive, "")


def function_of(op: Op) -> str:
    """The library function of an op.

    Args:
        op: the op.

    Returns:
        Name of the C function.

    >>> import numpy as np
    >>> function_of(arithmetic.add.op()), function_of(numbers.convert.op(dtype=np.dtype("int32")))
    ('tf_add', 'tf_convert<int>')
    """
    if op.primitive is numbers.convert:
        return f"tf_convert<{TYPES[op.params['dtype'].name]}>"
    return _RENAMED.get(op.primitive) or f"tf_{op.primitive.name}"


def literal(line: Literal) -> str:
    """A number as an expression of its dtype, exact to the bit.

    >>> literal(Literal(0.1, np.dtype("float64"))), literal(Literal(-3, np.dtype("int8")))
    ('0x1.999999999999ap-4', '(signed char)-3')
    """
    value, dtype = line.value, line.dtype
    if is_narrow(dtype):
        return f"{TYPES[dtype.name]}{{(tf_u2){np.asarray(value, dtype).view(np.uint16)}}}"
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        z = complex(value)
        return f"tf_pair({_floating(z.real, part)}, {_floating(z.imag, part)})"
    if dtype.kind == "f":
        return _floating(float(value.real), dtype)
    whole = int(value.real)
    if whole == -(2**63):
        return "tf_of<long long>::low()"  # C has no such literal
    return f"({TYPES[dtype.name]}){whole}{'ull' if dtype.kind == 'u' else 'll' if dtype.itemsize == 8 else ''}"


def _floating(value: float, dtype: np.dtype[Any]) -> str:
    name = TYPES[dtype.name]
    if math.isnan(value):
        return f"(tf_of<{name}>::high() - tf_of<{name}>::high())"
    if math.isinf(value):
        return f"tf_of<{name}>::{'high' if value > 0 else 'low'}()"
    text = dtype.type(value).item().hex()
    # Hexadecimal digits preserve the bits; the sign is separate, since -0.0 is a number and -x an operation.
    return f"(-{text[1:]}{_suffix(dtype)})" if text.startswith("-") else f"{text}{_suffix(dtype)}"


def _suffix(dtype: np.dtype[Any]) -> str:
    return "f" if dtype.itemsize == 4 else ""
