"""Arithmetic and extrema, element by element."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.identity import aliased
from tenferro_tensor.operands import converted, value, whole
from tenferro_tensor_core import finfo, float64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "abs",
    "abs2",
    "add",
    "ceil",
    "clip",
    "copysign",
    "divide",
    "floor",
    "floor_divide",
    "fmod",
    "maximum",
    "minimum",
    "multiply",
    "nan_to_num",
    "negative",
    "nextafter",
    "positive",
    "pow",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "square",
    "subtract",
    "trunc",
]


def __dir__() -> list[str]:
    return __all__.copy()


_ABS: Final = catalog.abs.op()
_ADD: Final = catalog.add.op()
_CEIL: Final = catalog.ceil.op()
_COPYSIGN: Final = catalog.copysign.op()
_DIV: Final = catalog.div.op()
_FLOOR: Final = catalog.floor.op()
_FLOOR_DIVIDE: Final = catalog.floor_divide.op()
_FMOD: Final = catalog.fmod.op()
_MAXIMUM: Final = catalog.maximum.op()
_MINIMUM: Final = catalog.minimum.op()
_MUL: Final = catalog.mul.op()
_NEG: Final = catalog.neg.op()
_NEXTAFTER: Final = catalog.nextafter.op()
_POW: Final = catalog.pow.op()
_REMAINDER: Final = catalog.remainder.op()
_ROUND: Final = catalog.round.op()
_SIGN: Final = catalog.sign.op()
_SUB: Final = catalog.sub.op()
_TRUNC: Final = catalog.trunc.op()


def abs(x: Any, /) -> Array:
    """Absolute value.

    Args:
        x: array of any shape and dtype.

    Returns:
        Array of the shape of `x`, of its dtype; real if `x` is complex.

    >>> tr.abs(tr.asarray([-2.0, 3.0]))
    Tensor([2., 3.])
    """
    return _ABS(x)


def add(x1: Any, x2: Any, /) -> Array:
    """Sum; logical or of booleans.

    Args:
        x1, x2: arrays or Python numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.add(tr.asarray([1, 2]), 1)
    Tensor([2, 3])
    """
    return _ADD(x1, x2)


def ceil(x: Any, /) -> Array:
    """Smallest integer not less than `x`, in the dtype of `x`.

    Args:
        x: real array of any shape.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.ceil(tr.asarray([1.2, -1.2]))
    Tensor([ 2., -1.])
    """
    return _CEIL(x)


def copysign(x1: Any, x2: Any, /) -> Array:
    """Magnitude of `x1` with the sign of `x2`.

    Args:
        x1: magnitudes, real.
        x2: signs, real; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted floating-point dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.copysign(tr.asarray([1.0]), -0.0)
    Tensor([-1.])
    """
    return _COPYSIGN(x1, x2)


def divide(x1: Any, x2: Any, /) -> Array:
    """Quotient; integers are divided in float64.

    Args:
        x1: dividends.
        x2: divisors; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted floating-point dtype.

    Raises:
        ShapeError: the shapes do not broadcast.

    See also:
        `floor_divide`, which rounds down.

    >>> tr.divide(tr.asarray([1, 2]), 2)
    Tensor([0.5, 1. ])
    """
    return _DIV(x1, x2)


def floor(x: Any, /) -> Array:
    """Largest integer not greater than `x`, in the dtype of `x`.

    Args:
        x: real array of any shape.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.floor(tr.asarray([1.2, -1.2]))
    Tensor([ 1., -2.])
    """
    return _FLOOR(x)


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """Quotient rounded towards minus infinity; integer division by zero is 0.

    Args:
        x1: dividends, real.
        x2: divisors, real; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    See also:
        `remainder`, the remainder that belongs to it.

    >>> tr.floor_divide(tr.asarray([7, -7]), 2)
    Tensor([ 3, -4])
    """
    return _FLOOR_DIVIDE(x1, x2)


def fmod(x1: Any, x2: Any, /) -> Array:
    """Remainder with the sign of the dividend, as in C.

    Args:
        x1: dividends, real.
        x2: divisors, real; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    See also:
        `remainder`, with the sign of the divisor.

    >>> tr.fmod(tr.asarray([7, -7]), 4)
    Tensor([ 3, -3])
    """
    return _FMOD(x1, x2)


def maximum(x1: Any, x2: Any, /) -> Array:
    """Larger operand; NaN if either is NaN.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    See also:
        `fmax`, which ignores NaN; `max`, which reduces axes.

    >>> tr.maximum(tr.asarray([1, 5]), 3)
    Tensor([3, 5])
    """
    return _MAXIMUM(x1, x2)


def minimum(x1: Any, x2: Any, /) -> Array:
    """Smaller operand; NaN if either is NaN.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    See also:
        `fmin`, which ignores NaN; `min`, which reduces axes.

    >>> tr.minimum(tr.asarray([1, 5]), 3)
    Tensor([1, 3])
    """
    return _MINIMUM(x1, x2)


def multiply(x1: Any, x2: Any, /) -> Array:
    """Product; logical and of booleans.

    Args:
        x1, x2: arrays or Python numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.multiply(tr.asarray([1, 2]), 3)
    Tensor([3, 6])
    """
    return _MUL(x1, x2)


def negative(x: Any, /) -> Array:
    """Negation; unsigned integers wrap around.

    Args:
        x: numeric array of any shape.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is boolean.

    >>> tr.negative(tr.asarray([1, -2]))
    Tensor([-1,  2])
    """
    return _NEG(x)


def nextafter(x1: Any, x2: Any, /) -> Array:
    """Next representable number after `x1` in the direction of `x2`.

    Args:
        x1: starting points, real.
        x2: directions, real; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted floating-point dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> bool(tr.nextafter(tr.asarray(1.0), 2.0) > 1.0)
    True
    """
    return _NEXTAFTER(x1, x2)


def pow(x1: Any, x2: Any, /) -> Array:
    """`x1` to the power `x2`; integer powers of integers are integers.

    Args:
        x1: bases.
        x2: exponents, at least 0 if both operands are integers; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: an integer has a negative integer exponent; use `float_power`.

    >>> tr.pow(tr.asarray([2, 3]), 2)
    Tensor([4, 9])
    """
    return _POW(x1, x2)


def remainder(x1: Any, x2: Any, /) -> Array:
    """Remainder with the sign of the divisor: ``x1 - floor_divide(x1, x2) * x2``.

    Args:
        x1: dividends, real.
        x2: divisors, real; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    See also:
        `fmod`, with the sign of the dividend.

    >>> tr.remainder(tr.asarray([7, -7]), 4)
    Tensor([3, 1])
    """
    return _REMAINDER(x1, x2)


def round(x: Any, /, decimals: int = 0) -> Array:
    """Nearest number with a given number of decimals; ties go to even.

    Complex numbers are rounded part by part.

    Args:
        x: array of any shape and dtype.
        decimals: number of decimals; a negative number rounds to multiples of a power of 10.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ArgumentError: `decimals` is not an integer.

    >>> tr.round(tr.asarray([0.5, 1.5]))
    Tensor([0., 2.])
    >>> tr.round(tr.asarray([1.25, 17.5]), -1)
    Tensor([ 0., 20.])
    """
    if decimals.__class__ is int and decimals == 0:
        return _ROUND(x)
    return _rounded(value(x), whole("round", "decimals", decimals))


def _rounded(x: Any, decimals: int) -> Any:
    dtype = x.spec.dtype
    if dtype.kind in "biu":
        return _ROUND(x) if decimals >= 0 else converted(_rounded(converted(x, float64), decimals), dtype)
    scale = 10.0 ** builtins.abs(decimals)
    if decimals < 0:
        return _MUL(_ROUND(_DIV(x, scale)), scale)
    return _DIV(_ROUND(_MUL(x, scale)), scale)


def sign(x: Any, /) -> Array:
    """Sign: -1, 0 or 1; ``x / abs(x)`` for complex numbers, and 0 at 0.

    Args:
        x: numeric array of any shape.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is boolean.

    >>> tr.sign(tr.asarray([-2.0, 0.0]))
    Tensor([-1.,  0.])
    """
    return _SIGN(x)


def subtract(x1: Any, x2: Any, /) -> Array:
    """Difference.

    Args:
        x1, x2: arrays or Python numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: the operands are boolean.

    >>> tr.subtract(tr.asarray([1, 2]), 1)
    Tensor([0, 1])
    """
    return _SUB(x1, x2)


def trunc(x: Any, /) -> Array:
    """Integer part, rounded towards zero, in the dtype of `x`.

    Args:
        x: real array of any shape.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.trunc(tr.asarray([1.7, -1.7]))
    Tensor([ 1., -1.])
    """
    return _TRUNC(x)


def abs2(x: Any, /) -> Array:
    """Squared absolute value ``real(x)**2 + imag(x)**2``, without a square root.

    Args:
        x: array of any shape and dtype.

    Returns:
        Array of the shape of `x`, of its dtype; real if `x` is complex.

    >>> tr.abs2(tr.asarray([3 + 4j]))
    Tensor([25.])
    """
    x = value(x)
    if not x.spec.cplx:
        return _MUL(x, x)
    re, im = catalog.real(x), catalog.imag(x)
    return _ADD(_MUL(re, re), _MUL(im, im))


def clip(x: Any, /, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Array:
    """Limit elements to an interval.

    Where `min` exceeds `max`, the result is `max`. Integer bounds outside the range of an integer dtype have no effect.

    Args:
        x: real array.
        min: lower bound, an array or number that broadcasts with `x`; None for no bound.
        max: upper bound, likewise.
        a_min: another name for `min`, NumPy's.
        a_max: another name for `max`.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: `x` is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.clip(tr.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)
    Tensor([0. , 0.5, 1. ])
    """
    x = value(x)
    if a_min is not None or a_max is not None:
        min, max = min if a_min is None else a_min, max if a_max is None else a_max
    min, max = _binding(min, x, below=True), _binding(max, x, below=False)
    if min is None:
        return aliased(x) if max is None else _MINIMUM(x, max)
    return _MAXIMUM(x, min) if max is None else catalog.clamp(x, min, max)


def _binding(bound: Any, x: Any, below: bool) -> Any:
    """The bound, or ``None`` if every value of the integer dtype of `x` meets it."""
    if bound.__class__ is not int or x.spec.dtype.kind not in "iu":
        return bound
    bits = 8 * x.spec.dtype.itemsize
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if x.spec.dtype.kind == "i" else (0, 2**bits - 1)
    if below:
        return None if bound <= least else bound
    return None if bound >= most else bound


def nan_to_num(x: Any, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """Replace NaN and infinities by finite numbers.

    Args:
        x: array of any shape and dtype.
        nan: replacement of NaN.
        posinf: replacement of infinity; by default the largest finite number.
        neginf: replacement of minus infinity; by default the most negative finite number.

    Returns:
        Array of the shape and dtype of `x`.

    >>> tr.nan_to_num(tr.asarray([float("nan"), 1.0, float("-inf")]), neginf=-9.0)
    Tensor([ 0.,  1., -9.])
    """
    x = value(x)
    if not x.spec.inexact:
        return aliased(x)
    if x.spec.cplx:
        parts = [nan_to_num(p, nan=nan, posinf=posinf, neginf=neginf) for p in (catalog.real(x), catalog.imag(x))]
        return catalog.complex(*parts)
    most = finfo(x.spec.dtype).max
    above = most if posinf is None else posinf
    under = -most if neginf is None else neginf
    out = catalog.select(catalog.is_nan(x), nan, x)
    out = catalog.select(catalog.eq(x, float("inf")), above, out)
    return catalog.select(catalog.eq(x, float("-inf")), under, out)


def positive(x: Any, /) -> Array:
    """`x` itself, as a separate value.

    Args:
        x: array of any shape and dtype.

    Returns:
        Array of the shape and dtype of `x`.

    >>> tr.positive(tr.asarray([-1]))
    Tensor([-1])
    """
    return aliased(value(x))


def reciprocal(x: Any, /) -> Array:
    """``1 / x``; integers are computed in float64.

    Args:
        x: array of any shape.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.reciprocal(tr.asarray([2.0, 4.0]))
    Tensor([0.5 , 0.25])
    """
    return _DIV(1, x)


def square(x: Any, /) -> Array:
    """``x * x``.

    Args:
        x: array of any shape and dtype.

    Returns:
        Array of the shape and dtype of `x`.

    See also:
        `abs2`, the squared magnitude.

    >>> tr.square(tr.asarray([2, -3]))
    Tensor([4, 9])
    """
    return _MUL(x, x)
