"""Element types: the thirteen numeric types of the Array API and their promotion lattice.

A dtype is a `numpy.dtype`, always the canonical instance: identity is equality for what
`dtype()` returns. One order explains the module: `a` converts to `b` when `promote(a, b)` is `b`.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import numpy as np

from ._errors import ArgumentError, DTypeError

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
float32: Final[DType] = np.dtype(np.float32)
float64: Final[DType] = np.dtype(np.float64)
complex64: Final[DType] = np.dtype(np.complex64)
complex128: Final[DType] = np.dtype(np.complex128)

DTYPES: Final[tuple[DType, ...]] = (
    *(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float32, float64, complex64, complex128),
)
"""Every dtype that tensors can have."""

_CANONICAL: Final[dict[DType, DType]] = {dt: dt for dt in DTYPES}
_NAMES: Final = ", ".join(dt.name for dt in DTYPES)


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
    try:
        # Python's int means int64 on every platform; NumPy 2 agrees, the law is stated here.
        found = int64 if x is int else np.dtype(x)
    except (TypeError, ValueError, SyntaxError):
        # NumPy's parser of comma separated strings lets SyntaxError through.
        raise DTypeError(f"{x!r} is not an element type; use one of {_NAMES}", given=x) from None
    canonical = _CANONICAL.get(found)
    if canonical is None:
        raise DTypeError(_unsupported(found), given=found)
    return canonical


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
    return dt.kind in "ifc"


def is_real_floating(dt: DType) -> bool:
    """Tell whether `dt` is float32 or float64.

    >>> is_real_floating(float32), is_real_floating(complex64)
    (True, False)
    """
    return dt.kind == "f"


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
    return dt.kind in "fc"


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
    return dtype(dt) if dt.kind in "fc" else float64


def complex_of(dt: DType) -> DType:
    """Return the complex type whose parts are `inexact_of(dt)`.

    >>> complex_of(float32), complex_of(int8)
    (dtype('complex64'), dtype('complex128'))
    """
    inexact = inexact_of(dt)
    if inexact.kind == "c":
        return inexact
    return complex64 if inexact is float32 else complex128


def _join(a: DType, b: DType) -> DType:
    """Least upper bound of two types in NumPy's lattice, derived from kinds and sizes."""
    if a is b or b.kind == "b":
        return a
    if a.kind == "b":
        return b
    if a.kind in "fc" or b.kind in "fc":
        # float32 holds the integers up to 16 bits; wider ones ask for float64.
        wide = any(d.itemsize > (2 if d.kind in "iu" else 4) for d in map(_part, (a, b)))
        real = float64 if wide else float32
        return complex_of(real) if "c" in (a.kind, b.kind) else real
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    # No signed type holds uint64: NumPy goes to float64, which rounds above 2**53.
    return {1: int16, 2: int32, 4: int64, 8: float64}[unsigned.itemsize]


def _part(dt: DType) -> DType:
    return real_of(dt) if dt.kind == "c" else dt


_PROMOTED: Final[dict[Any, DType]] = {(a, b): _join(a, b) for a in DTYPES for b in DTYPES}


def promote(*dtypes: Any) -> DType:
    """Return the smallest type to which all of `dtypes` convert: NumPy's lattice.

    Raises:
        DTypeError: one of them is unsupported.
        ArgumentError: nothing was given.

    >>> promote(int8, uint8), promote(int32, float32), promote(float64, "complex64")
    (dtype('int16'), dtype('float64'), dtype('complex128'))
    """
    try:
        return _PROMOTED[dtypes]
    except (KeyError, TypeError):
        pass  # not a pair of canonical dtypes
    if not dtypes:
        raise ArgumentError("promote needs at least one dtype, got none; pass the operands' dtypes")
    # The joins do not associate: int16 with uint16 first is int32, and then float64 beside float32.
    # NumPy lets the highest kind meet each of the others; so does this order, whatever the input's.
    found = sorted({dtype(x) for x in dtypes}, key=_RANK.__getitem__)
    out = found[-1]
    for dt in found[:-1]:
        out = _PROMOTED[out, dt]
    return out


_RANK: Final = {dt: i for i, dt in enumerate(DTYPES)}
_WEAK_RANK: Final = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_WEAK_DEFAULT: Final[dict[type, DType]] = {
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}


def weak(scalar_cls: type, dt: DType) -> DType:
    """Return the type of `array op scalar` for an array of type `dt` and a Python scalar.

    A Python scalar only decides the kind, never the precision: a float beside float32 stays
    float32, beside an integer it gives float64.

    Raises:
        DTypeError: `scalar_cls` is not bool, int, float or complex.

    >>> weak(float, float32), weak(complex, float32), weak(float, int8), weak(int, int8)
    (dtype('float32'), dtype('complex64'), dtype('float64'), dtype('int8'))
    """
    try:
        return _WEAK[scalar_cls, dt]
    except (KeyError, TypeError):
        return _weak(scalar_cls, dt)


def _weak(scalar_cls: type, dt: Any) -> DType:
    default = _WEAK_DEFAULT.get(scalar_cls)
    if default is None:
        raise DTypeError(
            f"{scalar_cls!r} is not a Python scalar type; weak scalars are bool, int, float and "
            "complex; convert the value to one of them",
            given=scalar_cls,
        )
    found = dtype(dt)
    if _WEAK_RANK[found.kind] >= _WEAK_RANK[default.kind]:
        return found
    return complex_of(found) if found.kind == "f" else default


_WEAK: Final[dict[Any, DType]] = {(cls, dt): _weak(cls, dt) for cls in _WEAK_DEFAULT for dt in DTYPES}


def result_type(*operands: Any) -> DType:
    """Return the type in which `operands` meet: dtypes, NumPy values, weak Python scalars.

    Dtypes are promoted first; a Python scalar then raises the kind if it must. Scalars alone
    count as bool, int64, float64 and complex128.

    Raises:
        DTypeError: an operand is neither.
        ArgumentError: nothing was given.

    >>> result_type(float32, 2.0), result_type("int8", 2.0), result_type(1, 1j)
    (dtype('float32'), dtype('float64'), dtype('complex128'))
    """
    if not operands:
        raise ArgumentError("result_type needs at least one dtype or scalar, got none; pass one")
    strong: list[Any] = []
    scalars: list[type] = []
    for x in operands:
        if type(x) in _WEAK_DEFAULT:
            scalars.append(type(x))
        # np.float64 and np.complex128 subclass Python's types and are strong all the same.
        elif isinstance(x, np.generic | np.ndarray):
            strong.append(x.dtype)
        elif isinstance(x, bool | int | float | complex):
            scalars.append(_scalar_class(x))
        else:
            strong.append(x)
    if not scalars:
        return promote(*strong)
    top = scalars[0]
    if len(scalars) > 1:
        top = max(scalars, key=lambda cls: _WEAK_RANK[_WEAK_DEFAULT[cls].kind])
    if not strong:
        return _WEAK_DEFAULT[top]
    return weak(top, strong[0] if len(strong) == 1 else promote(*strong))


def _scalar_class(x: Scalar) -> type:
    return next(cls for cls in (bool, int, float, complex) if isinstance(x, cls))


def can_convert(src: DType, dst: DType) -> bool:
    """Tell whether `convert` accepts this step: upwards in the promotion lattice.

    Kind and range are kept. As everywhere in NumPy's lattice, 64-bit integers count as fitting
    float64, which rounds them above 2**53.

    >>> can_convert(int16, float32), can_convert(int32, float32), can_convert(complex64, float32)
    (True, False, False)
    """
    dst = dtype(dst)
    return _PROMOTED[dtype(src), dst] is dst


def can_cast(src: Any, dst: Any) -> bool:
    """Tell whether the explicit, lossy `cast` is defined: between any two supported types.

    Float to integer truncates, complex to real takes the real part, anything to bool tests
    against zero.

    >>> can_cast(complex128, int8), can_cast("float16", "float32")
    (True, False)
    """
    try:
        dtype(src), dtype(dst)
    except DTypeError:
        return False
    return True


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
        return dt.kind in letters
    return dt is dtype(kind)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
