"""Dtypes: the thirteen of the Array API, and the narrow float16 and bfloat16.

A dtype is a `numpy.dtype`, always the canonical instance: for dtypes that `dtype()` returns,
identity is equality.

The narrow dtypes are storage formats: every operation computes in float32 and rounds its results
once. bfloat16 comes from `ml_dtypes`, which is imported on first use.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import numpy as np

from ._errors import ArgumentError, DTypeError, MissingDTypeError
from .forks import importing, new_lock

DType: TypeAlias = np.dtype[Any]
"""A dtype is a NumPy dtype object."""

Scalar: TypeAlias = bool | int | float | complex
"""A Python number. It is weakly typed: it adopts the dtype of the array operands."""

bool_: Final[DType] = np.dtype(np.bool_)
int8: Final[DType] = np.dtype(np.int8)
int16: Final[DType] = np.dtype(np.int16)
int32: Final[DType] = np.dtype(np.int32)
int64: Final[DType] = np.dtype(np.int64)
uint8: Final[DType] = np.dtype(np.uint8)
uint16: Final[DType] = np.dtype(np.uint16)
uint32: Final[DType] = np.dtype(np.uint32)
uint64: Final[DType] = np.dtype(np.uint64)
float16: Final[DType] = np.dtype(np.float16)
float32: Final[DType] = np.dtype(np.float32)
float64: Final[DType] = np.dtype(np.float64)
complex64: Final[DType] = np.dtype(np.complex64)
complex128: Final[DType] = np.dtype(np.complex128)

DTYPES: Final[tuple[DType, ...]] = (
    *(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float32, float64, complex64, complex128),
)
"""The dtypes of the Array API standard. Tensors additionally support float16 and bfloat16."""

_CANONICAL: Final[dict[DType, DType]] = {dt: dt for dt in (*DTYPES, float16)}
_NAMES: Final = ", ".join([*[dt.name for dt in (*DTYPES[:9], float16)], "bfloat16", *[dt.name for dt in DTYPES[9:]]])
_NARROW: Final[set[DType]] = {float16}
_lock: Final = new_lock()

ON_NEW_DTYPE: Final[list[Callable[[DType], None]]] = []
"""Callbacks that extend tables over all dtypes; called with bfloat16 before `dtype` first returns it."""


def dtype(x: Any) -> DType:
    """Return the canonical dtype that `x` names.

    Args:
        x: a dtype, a NumPy scalar type, a name such as `"float32"`, or one of the Python types
            `bool`, `int`, `float`, `complex` (meaning bool, int64, float64, complex128).

    Returns:
        The canonical `numpy.dtype` instance.

    Raises:
        DTypeError: `x` names no supported dtype, or one in foreign byte order.
        MissingDTypeError: `x` is bfloat16, and `ml_dtypes` is not installed.

    >>> dtype("f4"), dtype(int), dtype(np.complex64)
    (dtype('float32'), dtype('int64'), dtype('complex64'))
    """
    if x is None:
        raise DTypeError(f"None is not an element type; use one of {_NAMES}", given=None)
    if x.__class__ is str and x == "bfloat16":
        return load_bfloat16()
    try:
        # Python's int means int64 on every platform, whatever NumPy's default integer is.
        found = int64 if x is int else np.dtype(x)
    except (TypeError, ValueError, SyntaxError):
        # NumPy's parser of comma-separated strings can raise SyntaxError.
        raise DTypeError(f"{x!r} is not an element type; use one of {_NAMES}", given=x) from None
    canonical = _CANONICAL.get(found)
    if canonical is None:
        if found.type.__module__ == "ml_dtypes" and found.type.__name__ == "bfloat16":
            return load_bfloat16()
        raise DTypeError(_unsupported(found), given=found)
    return canonical


def load_bfloat16() -> DType:
    """Return bfloat16, the 16-bit float with the exponent range of float32, which `ml_dtypes` adds to NumPy.

    Returns:
        The canonical dtype.

    Raises:
        MissingDTypeError: `ml_dtypes` is not installed.

    >>> load_bfloat16()
    dtype(bfloat16)
    """
    try:
        with importing():
            from ml_dtypes import bfloat16 as scalar
    except ImportError as cause:
        raise MissingDTypeError(
            "bfloat16 needs the package ml_dtypes, which cannot be imported here; pip install ml_dtypes"
        ) from cause
    found: DType = np.dtype(scalar)
    if found not in _CANONICAL:
        with _lock:
            _NARROW.add(found)
            for extend in ON_NEW_DTYPE:
                extend(found)
            _CANONICAL[found] = found
    return found


def kind_of(dt: DType) -> str:
    """Return NumPy's kind character of a dtype; bfloat16 is `"f"`, although NumPy reports void.

    Args:
        dt: a supported dtype.

    Returns:
        One of `"b"`, `"i"`, `"u"`, `"f"` and `"c"`.

    >>> kind_of(float32), kind_of(dtype("bfloat16"))
    ('f', 'f')
    """
    kind = dt.kind
    return "f" if kind == "V" else kind


def is_narrow(dt: DType) -> bool:
    """Whether a dtype is float16 or bfloat16: storage formats in which nothing is computed.

    Args:
        dt: a supported dtype.

    Returns:
        True for the narrow dtypes.

    >>> is_narrow(float16), is_narrow(float32)
    (True, False)
    """
    return dt in _NARROW


def computing_type(dt: DType) -> DType:
    """Return the dtype in which operations on `dt` compute: float32 for the narrow ones, else `dt`.

    Args:
        dt: a supported dtype.

    Returns:
        The canonical dtype.

    >>> computing_type(float16), computing_type(int8)
    (dtype('float32'), dtype('int8'))
    """
    return float32 if dt in _NARROW else dtype(dt)


def _unsupported(found: DType) -> str:
    native = found.newbyteorder("=")
    if native in _CANONICAL:
        return (
            f"{native.name} in foreign byte order ({found.str!r}) is not supported; "
            f"convert the data with a.astype({native.name!r}) first"
        )
    return f"element type {str(found)!r} is not supported; convert to one of {_NAMES}"


def is_bool(dt: DType) -> bool:
    """Whether a dtype is the boolean dtype.

    Args:
        dt: a supported dtype.

    Returns:
        True for bool.

    >>> is_bool(bool_), is_bool(uint8)
    (True, False)
    """
    return dt.kind == "b"


def is_integer(dt: DType) -> bool:
    """Whether a dtype is a signed or unsigned integer dtype; bool is not.

    Args:
        dt: a supported dtype.

    Returns:
        True for integer dtypes.

    >>> is_integer(uint8), is_integer(bool_)
    (True, False)
    """
    return dt.kind in "iu"


def is_signed(dt: DType) -> bool:
    """Whether a dtype has negative values, as signed integers, floats and complex numbers do.

    Args:
        dt: a supported dtype.

    Returns:
        True for signed dtypes.

    >>> is_signed(int8), is_signed(float32), is_signed(uint8)
    (True, True, False)
    """
    return kind_of(dt) in "ifc"


def is_real_floating(dt: DType) -> bool:
    """Whether a dtype is real floating point, narrow or not.

    Args:
        dt: a supported dtype.

    Returns:
        True for real floating-point dtypes.

    >>> is_real_floating(float32), is_real_floating(complex64)
    (True, False)
    """
    return kind_of(dt) == "f"


def is_complex(dt: DType) -> bool:
    """Whether a dtype is complex64 or complex128.

    Args:
        dt: a supported dtype.

    Returns:
        True for complex dtypes.

    >>> is_complex(complex64), is_complex(float64)
    (True, False)
    """
    return dt.kind == "c"


def is_inexact(dt: DType) -> bool:
    """Whether a dtype is real or complex floating point, hence differentiable.

    Args:
        dt: a supported dtype.

    Returns:
        True for floating-point dtypes.

    >>> is_inexact(complex64), is_inexact(int64)
    (True, False)
    """
    return kind_of(dt) in "fc"


def real_of(dt: DType) -> DType:
    """Return the dtype of the real part.

    Args:
        dt: a supported dtype.

    Returns:
        float32 or float64 for complex dtypes, `dt` itself for all others.

    >>> real_of(complex64)
    dtype('float32')
    """
    if dt.kind != "c":
        return dtype(dt)
    return float32 if dt.itemsize == 8 else float64


def inexact_of(dt: DType) -> DType:
    """Return the floating-point dtype to which functions such as `sin` convert `dt`.

    Args:
        dt: a supported dtype.

    Returns:
        `dt` if it is real or complex floating point, float64 for integers and booleans.

    >>> inexact_of(int8), inexact_of(complex64)
    (dtype('float64'), dtype('complex64'))
    """
    return dtype(dt) if kind_of(dt) in "fc" else float64


def complex_of(dt: DType) -> DType:
    """Return the complex dtype whose parts can hold `inexact_of(dt)`.

    Args:
        dt: a supported dtype.

    Returns:
        complex64 for float32 and the narrow dtypes, complex128 for other real dtypes, `dt` if it is complex.

    >>> complex_of(float32), complex_of(int8), complex_of(float16)
    (dtype('complex64'), dtype('complex128'), dtype('complex64'))
    """
    inexact = inexact_of(dt)
    if inexact.kind == "c":
        return inexact
    return complex128 if inexact is float64 else complex64


_KINDS: Final[dict[str, str]] = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dt: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dt: the dtype, or a name of it.
        kind: a dtype, a kind name of the Array API such as `"real floating"`, or a tuple of these, any of which
            may match.

    Returns:
        True if `dt` is of `kind`.

    Raises:
        ArgumentError: `kind` is an unknown name.
        DTypeError: a dtype is not supported.

    >>> isdtype(float32, "real floating"), isdtype(int8, ("bool", float64))
    (True, False)
    """
    dt = dtype(dt)
    if isinstance(kind, tuple):
        return any(isdtype(dt, k) for k in kind)
    if isinstance(kind, str):
        letters = _KINDS.get(kind)
        if letters is None:
            raise ArgumentError(
                f"isdtype does not know the kind {kind!r}; use a dtype, or one of {_quoted(_KINDS)}",
                kind=kind,
            )
        return kind_of(dt) in letters
    return dt is dtype(kind)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
