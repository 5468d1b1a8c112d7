"""Element types: the thirteen numeric types of the Array API, and two narrow ones.

A dtype is a `numpy.dtype`, always the canonical instance: identity is equality for what
`dtype()` returns.

float16 and bfloat16 are narrow: arrays are stored in them, and every step computes in float32 and
rounds its results to them once. bfloat16 comes from `ml_dtypes`, which is imported when the type is
first asked for.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import numpy as np

from ._errors import ArgumentError, DTypeError, MissingDTypeError
from .forks import importing, new_lock

DType: TypeAlias = np.dtype[Any]
"""NumPy's objects are the dtypes."""

Scalar: TypeAlias = bool | int | float | complex
"""A Python number, which is weak: it takes the dtype of the arrays beside it."""

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
"""The dtypes of the Array API standard. Tensors can have float16 and `bfloat16` besides."""

_CANONICAL: Final[dict[DType, DType]] = {dt: dt for dt in (*DTYPES, float16)}
_NAMES: Final = ", ".join([*[dt.name for dt in (*DTYPES[:9], float16)], "bfloat16", *[dt.name for dt in DTYPES[9:]]])
_NARROW: Final[set[DType]] = {float16}
_lock: Final = new_lock()

ADDED: Final[list[Callable[[DType], None]]] = []
"""Called with bfloat16 before anybody is given it: tables over all dtypes make room for it."""


def dtype(x: Any) -> DType:
    """Return the canonical dtype that `x` names.

    `x` is a dtype, a NumPy scalar type, a name such as `"float32"`, or one of the Python types
    `bool`, `int`, `float`, `complex` (meaning bool, int64, float64, complex128).

    Raises:
        DTypeError: `x` names no supported type, or one in foreign byte order.

    >>> dtype("f4"), dtype(int), dtype(np.complex64)
    (dtype('float32'), dtype('int64'), dtype('complex64'))
    """
    if x is None:
        raise DTypeError(f"None is not an element type; use one of {_NAMES}", given=None)
    if x.__class__ is str and x == "bfloat16":
        return load_bfloat16()
    try:
        # Python's int means int64 on every platform; NumPy 2 agrees, the law is stated here.
        found = int64 if x is int else np.dtype(x)
    except (TypeError, ValueError, SyntaxError):
        # NumPy's parser of comma separated strings lets SyntaxError through.
        raise DTypeError(f"{x!r} is not an element type; use one of {_NAMES}", given=x) from None
    canonical = _CANONICAL.get(found)
    if canonical is None:
        if found.type.__module__ == "ml_dtypes" and found.type.__name__ == "bfloat16":
            return load_bfloat16()
        raise DTypeError(_unsupported(found), given=found)
    return canonical


def load_bfloat16() -> DType:
    """Return the type of 16 bits with the exponents of float32, which `ml_dtypes` adds to NumPy.

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
            for enter in ADDED:
                enter(found)
            _CANONICAL[found] = found
    return found


def kind_of(dt: DType) -> str:
    """Return NumPy's letter for the kind of `dt`; bfloat16 is of kind `"f"`, though NumPy says void.

    >>> kind_of(float32), kind_of(dtype("bfloat16"))
    ('f', 'f')
    """
    kind = dt.kind
    return "f" if kind == "V" else kind


def is_narrow(dt: DType) -> bool:
    """Tell whether `dt` is float16 or bfloat16, in which arrays are stored but nothing is computed.

    >>> is_narrow(float16), is_narrow(float32)
    (True, False)
    """
    return dt in _NARROW


def computing_type(dt: DType) -> DType:
    """Return the type in which steps on `dt` compute: float32 for the narrow ones, else `dt`.

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
    """Tell whether `dt` is the boolean type.

    >>> is_bool(bool_), is_bool(uint8)
    (True, False)
    """
    return dt.kind == "b"


def is_integer(dt: DType) -> bool:
    """Tell whether `dt` is an integer type, signed or not; booleans are not.

    >>> is_integer(uint8), is_integer(bool_)
    (True, False)
    """
    return dt.kind in "iu"


def is_signed(dt: DType) -> bool:
    """Tell whether `dt` has negative values: signed integers, floats and complex types.

    >>> is_signed(int8), is_signed(float32), is_signed(uint8)
    (True, True, False)
    """
    return kind_of(dt) in "ifc"


def is_real_floating(dt: DType) -> bool:
    """Tell whether `dt` is real floating point, narrow or not.

    >>> is_real_floating(float32), is_real_floating(complex64)
    (True, False)
    """
    return kind_of(dt) == "f"


def is_complex(dt: DType) -> bool:
    """Tell whether `dt` is complex64 or complex128.

    >>> is_complex(complex64), is_complex(float64)
    (True, False)
    """
    return dt.kind == "c"


def is_inexact(dt: DType) -> bool:
    """Tell whether `dt` is floating, real or complex: the types that carry derivatives.

    >>> is_inexact(complex64), is_inexact(int64)
    (True, False)
    """
    return kind_of(dt) in "fc"


def real_of(dt: DType) -> DType:
    """Return the type of the real part; a type that is not complex is its own.

    >>> real_of(complex64)
    dtype('float32')
    """
    if dt.kind != "c":
        return dtype(dt)
    return float32 if dt.itemsize == 8 else float64


def inexact_of(dt: DType) -> DType:
    """Return `dt` when it is floating, float64 for integers and booleans.

    >>> inexact_of(int8), inexact_of(complex64)
    (dtype('float64'), dtype('complex64'))
    """
    return dtype(dt) if kind_of(dt) in "fc" else float64


def complex_of(dt: DType) -> DType:
    """Return the complex type whose parts hold `inexact_of(dt)`: complex64 for the narrow types.

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
    """Tell whether `dt` is of `kind`: a dtype, an Array API kind name, or a tuple of both.

    Raises:
        ArgumentError: an unknown kind name.
        DTypeError: an unsupported dtype.

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
                f"isdtype knows no kind {kind!r}; use a dtype, or one of {_quoted(_KINDS)}",
                kind=kind,
            )
        return kind_of(dt) in letters
    return dt is dtype(kind)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
