"""The library function of each primitive by kinds of dtypes, and the C form of dtypes and numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tenferro_tensor import Op, Primitive
from tenferro_tensor.catalog import analytic, arithmetic, bits, comparison, numbers
from tenferro_tensor.loop_ir import Literal
from tenferro_tensor_core import is_narrow

TYPES: Final[dict[str, str]] = {
    "bool": "bool",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
    "float16": "tf_f2", "bfloat16": "tf_b2", "float32": "float", "float64": "double",
    "complex64": "tf_c8", "complex128": "tf_c16",
}  # fmt: skip
"""C type of each dtype."""

# Kinds of dtypes, as NumPy's letters and "n" for narrow floats, for which the function tf_<name> of the library is the
# primitive.
KINDS: Final[dict[Primitive, str]] = {
    arithmetic.add: "biufc",
    arithmetic.sub: "iufc",
    arithmetic.mul: "biufc",
    arithmetic.absorbing_mul: "biufc",
    arithmetic.div: "fc",
    arithmetic.floor_divide: "iuf",
    arithmetic.remainder: "iuf",
    arithmetic.fmod: "iuf",
    arithmetic.pow: "fc",
    arithmetic.neg: "iufc",
    arithmetic.abs: "biufc",
    arithmetic.sign: "iufc",
    arithmetic.maximum: "biuf",
    arithmetic.minimum: "biuf",
    arithmetic.clamp: "biuf",
    arithmetic.copysign: "f",
    arithmetic.nextafter: "f",
    arithmetic.floor: "biuf",
    arithmetic.ceil: "biuf",
    arithmetic.trunc: "biuf",
    arithmetic.round: "biufc",
    numbers.conj: "biufcn",
    numbers.real: "biufcn",
    numbers.imag: "biufc",
    numbers.complex: "f",
    numbers.convert: "biufcn",
    numbers.stop_gradient: "biufcn",
    comparison.eq: "biufc",
    comparison.ne: "biufc",
    comparison.lt: "biuf",
    comparison.le: "biuf",
    comparison.gt: "biuf",
    comparison.ge: "biuf",
    comparison.is_nan: "biufc",
    comparison.is_inf: "biufc",
    comparison.is_finite: "biufc",
    comparison.signbit: "f",
    comparison.select: "biufcn",
    bits.bitwise_and: "biu",
    bits.bitwise_or: "biu",
    bits.bitwise_xor: "biu",
    bits.bitwise_not: "biu",
    bits.shift_left: "iu",
    bits.shift_right: "iu",
    bits.population_count: "iu",
    **{
        getattr(analytic, name): "fc"
        for name in (
            "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin",
            "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
        )
    },
    **{
        getattr(analytic, name): "f"
        for name in ("cbrt", "atan2", "hypot", "logaddexp", "erf", "erfc", "lgamma")
    },
}  # fmt: skip

_WRITTEN_OUT: Final = "kernels write it out (`loop_ir.expansion`); CuPy's serves one by one"
_BITS: Final = "narrow floats are moved as their bits; CuPy's function serves one by one"
_NEGATIVE: Final = "a negative exponent is an error, which a kernel cannot raise; known powers are written out"

RESERVED: Final[dict[Primitive, dict[str, str]]] = {
    arithmetic.pow: {"iu": _NEGATIVE},
    analytic.erfinv: {"f": _WRITTEN_OUT},
    analytic.digamma: {"f": _WRITTEN_OUT},
    analytic.polygamma: {"f": _WRITTEN_OUT},
    arithmetic.nextafter: {"n": _BITS},
    numbers.imag: {"n": _BITS},
}
"""Kinds of dtypes without a function on purpose, and the reason."""

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
