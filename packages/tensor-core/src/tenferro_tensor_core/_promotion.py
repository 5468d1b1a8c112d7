"""The promotion lattice: common dtypes of operands, and the conversions that preserve kind and range.

Its partial order: `a` converts to `b` if and only if `promote(a, b)` is `b`.
"""

from typing import Any, Final

import numpy as np

from ._dtypes import (
    DTYPES,
    ON_NEW_DTYPE,
    DType,
    Scalar,
    bool_,
    complex64,
    complex128,
    complex_of,
    dtype,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    is_inexact,
    is_integer,
    kind_of,
    real_of,
)
from ._errors import ArgumentError, DTypeError

_KNOWN: Final[list[DType]] = [*DTYPES[:9], float16, *DTYPES[9:]]
"""Every dtype, sorted by kind from the lowest to the highest."""


def _join(a: DType, b: DType) -> DType:
    """Least upper bound of two dtypes in NumPy's lattice, derived from kinds and sizes."""
    if a is b or b.kind == "b":
        return a
    if a.kind == "b":
        return b
    if is_inexact(a) or is_inexact(b):
        x, y = _holding(a), _holding(b)
        if x is None or y is None:
            real = x or y or float32
        else:
            # Neither narrow dtype contains the other: float16 has more digits, bfloat16 a larger exponent range.
            real = x if x is y else float64 if float64 in (x, y) else float32
        return complex_of(real) if "c" in (a.kind, b.kind) else real
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    # No signed integer holds uint64: NumPy promotes to float64, which rounds above 2**53.
    return {1: int16, 2: int32, 4: int64, 8: float64}[unsigned.itemsize]


def _holding(dt: DType) -> DType | None:
    """Smallest real floating dtype that holds `dt`; None for 8-bit integers, which all of them hold."""
    if not is_integer(dt):
        return real_of(dt) if dt.kind == "c" else dt
    return None if dt.itemsize == 1 else float32 if dt.itemsize == 2 else float64


_PROMOTED: Final[dict[Any, DType]] = {(a, b): _join(a, b) for a in _KNOWN for b in _KNOWN}


def promote(*dtypes: Any) -> DType:
    """Return the smallest dtype to which all of `dtypes` convert, by NumPy's lattice.

    Args:
        dtypes: dtypes, or names of dtypes.

    Returns:
        The least upper bound.

    Raises:
        DTypeError: one of them is not supported.
        ArgumentError: no dtype was given.

    See also:
        `result_type`, which also takes arrays and Python scalars.

    >>> promote("int8", "uint8"), promote(int32, float32), promote(float64, "complex64")
    (dtype('int16'), dtype('float64'), dtype('complex128'))
    """
    try:
        return _PROMOTED[dtypes]
    except (KeyError, TypeError):
        pass  # not a pair of canonical dtypes
    if not dtypes:
        raise ArgumentError("promote needs at least one dtype, got none; pass the operands' dtypes")
    # Joins are not associative: (int16, uint16) is int32, which with float32 becomes float64, while float32 holds
    # both. As in NumPy, the highest kind is joined with each of the others, whatever the order of the arguments.
    found = sorted({dtype(x) for x in dtypes}, key=_RANK.__getitem__)
    out = found[-1]
    for dt in found[:-1]:
        out = _PROMOTED[out, dt]
    return out


_RANK: Final = {dt: i for i, dt in enumerate(_KNOWN)}
_WEAK_RANK: Final = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_WEAK_DEFAULT: Final[dict[type, DType]] = {
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}


def weak(scalar_cls: type, dt: DType) -> DType:
    """Return the dtype of `array op scalar` for an array of dtype `dt` and a Python scalar.

    A Python scalar can raise the kind, never the precision: a float with float32 stays float32,
    with an integer it becomes float64.

    Args:
        scalar_cls: `bool`, `int`, `float` or `complex`.
        dt: dtype of the array.

    Returns:
        The dtype of the result.

    Raises:
        DTypeError: `scalar_cls` is not bool, int, float or complex.

    >>> weak(float, float32), weak(complex, float32), weak(float, dtype("int8")), weak(int, dtype("int8"))
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
    return _weak_of(default, dtype(dt))


def _weak_of(default: DType, dt: DType) -> DType:
    if _WEAK_RANK[kind_of(dt)] >= _WEAK_RANK[default.kind]:
        return dt
    if not is_inexact(dt):
        return default
    return complex128 if dt is float64 else complex64


_WEAK: Final[dict[Any, DType]] = {
    (cls, dt): _weak_of(default, dt) for cls, default in _WEAK_DEFAULT.items() for dt in _KNOWN
}


def result_type(*operands: Any) -> DType:
    """Return the common dtype of operands.

    Dtypes are promoted first; a Python scalar then raises the kind if necessary. Without arrays and
    dtypes, Python scalars count as bool, int64, float64 and complex128.

    Args:
        operands: dtypes, NumPy arrays and scalars, and Python scalars, which are weak.

    Returns:
        The common dtype.

    Raises:
        DTypeError: an operand is none of these.
        ArgumentError: no operand was given.

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
        # np.float64 and np.complex128 subclass Python's classes, but they are strongly typed.
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
    """Whether `convert` accepts a conversion: upwards in the promotion lattice, preserving kind and range.

    As in NumPy's lattice, 64-bit integers count as fitting float64, which rounds them above 2**53.

    Args:
        src: the dtype to convert from.
        dst: the dtype to convert to.

    Returns:
        True if `promote(src, dst)` is `dst`.

    See also:
        `can_cast`, for the lossy `cast`.

    >>> can_convert(int16, float32), can_convert(int32, float32), can_convert(complex64, float32)
    (True, False, False)
    """
    dst = dtype(dst)
    return _PROMOTED[dtype(src), dst] is dst


def can_cast(src: Any, dst: Any) -> bool:
    """Whether the explicit, lossy `cast` is defined, which it is between any two supported dtypes.

    Float to integer truncates, complex to real takes the real part, anything to bool compares
    with zero.

    Args:
        src: the dtype to cast from.
        dst: the dtype to cast to.

    Returns:
        True if both dtypes are supported.

    See also:
        `can_convert`, for conversions that preserve kind and range.

    >>> can_cast(complex128, "int8"), can_cast("float16", "float32"), can_cast("str", "float32")
    (True, True, False)
    """
    try:
        dtype(src), dtype(dst)
    except DTypeError:
        return False
    return True


def _extend(narrow: DType) -> None:
    """Add a narrow dtype to the tables, next to float16."""
    _KNOWN.insert(_KNOWN.index(float16) + 1, narrow)
    _RANK.update({dt: i for i, dt in enumerate(_KNOWN)})
    for dt in _KNOWN:
        _PROMOTED[narrow, dt] = _PROMOTED[dt, narrow] = _join(narrow, dt)
    _WEAK.update({(cls, narrow): _weak_of(default, narrow) for cls, default in _WEAK_DEFAULT.items()})


ON_NEW_DTYPE.append(_extend)
