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
    """Magnitude; real for complex operands.

    >>> tr.abs(tr.asarray([-2.0, 3.0]))
    Tensor([2., 3.])
    """
    return _ABS(x)


def add(x1: Any, x2: Any, /) -> Array:
    """Sum.

    >>> tr.add(tr.asarray([1, 2]), 1)
    Tensor([2, 3])
    """
    return _ADD(x1, x2)


def ceil(x: Any, /) -> Array:
    """Smallest integer not below `x`, in the dtype of `x`.

    >>> tr.ceil(tr.asarray([1.2, -1.2]))
    Tensor([ 2., -1.])
    """
    return _CEIL(x)


def copysign(x1: Any, x2: Any, /) -> Array:
    """Magnitude of `x1` with the sign of `x2`.

    >>> tr.copysign(tr.asarray([1.0]), -0.0)
    Tensor([-1.])
    """
    return _COPYSIGN(x1, x2)


def divide(x1: Any, x2: Any, /) -> Array:
    """Quotient; of integers, computed in float64.

    >>> tr.divide(tr.asarray([1, 2]), 2)
    Tensor([0.5, 1. ])
    """
    return _DIV(x1, x2)


def floor(x: Any, /) -> Array:
    """Largest integer not above `x`, in the dtype of `x`.

    >>> tr.floor(tr.asarray([1.2, -1.2]))
    Tensor([ 1., -2.])
    """
    return _FLOOR(x)


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """Quotient rounded towards minus infinity.

    >>> tr.floor_divide(tr.asarray([7, -7]), 2)
    Tensor([ 3, -4])
    """
    return _FLOOR_DIVIDE(x1, x2)


def fmod(x1: Any, x2: Any, /) -> Array:
    """Remainder with the sign of the dividend, as C's ``fmod``.

    >>> tr.fmod(tr.asarray([7, -7]), 4)
    Tensor([ 3, -3])
    """
    return _FMOD(x1, x2)


def maximum(x1: Any, x2: Any, /) -> Array:
    """Larger operand; NaN if either is NaN.

    >>> tr.maximum(tr.asarray([1, 5]), 3)
    Tensor([3, 5])
    """
    return _MAXIMUM(x1, x2)


def minimum(x1: Any, x2: Any, /) -> Array:
    """Smaller operand; NaN if either is NaN.

    >>> tr.minimum(tr.asarray([1, 5]), 3)
    Tensor([1, 3])
    """
    return _MINIMUM(x1, x2)


def multiply(x1: Any, x2: Any, /) -> Array:
    """Product.

    >>> tr.multiply(tr.asarray([1, 2]), 3)
    Tensor([3, 6])
    """
    return _MUL(x1, x2)


def negative(x: Any, /) -> Array:
    """Negative.

    >>> tr.negative(tr.asarray([1, -2]))
    Tensor([-1,  2])
    """
    return _NEG(x)


def nextafter(x1: Any, x2: Any, /) -> Array:
    """Next representable number after `x1` in the direction of `x2`.

    >>> bool(tr.nextafter(tr.asarray(1.0), 2.0) > 1.0)
    True
    """
    return _NEXTAFTER(x1, x2)


def pow(x1: Any, x2: Any, /) -> Array:
    """`x1` to the power `x2`; of integers an integer, with exponents of at least 0.

    >>> tr.pow(tr.asarray([2, 3]), 2)
    Tensor([4, 9])
    """
    return _POW(x1, x2)


def remainder(x1: Any, x2: Any, /) -> Array:
    """Remainder with the sign of the divisor.

    >>> tr.remainder(tr.asarray([7, -7]), 4)
    Tensor([3, 1])
    """
    return _REMAINDER(x1, x2)


def round(x: Any, /, decimals: int = 0) -> Array:
    """Nearest number with so many decimals, halves to even, in the dtype of `x`; of complex numbers part by part.

    With negative `decimals`, the nearest multiple of a power of 10.

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

    >>> tr.sign(tr.asarray([-2.0, 0.0]))
    Tensor([-1.,  0.])
    """
    return _SIGN(x)


def subtract(x1: Any, x2: Any, /) -> Array:
    """Difference.

    >>> tr.subtract(tr.asarray([1, 2]), 1)
    Tensor([0, 1])
    """
    return _SUB(x1, x2)


def trunc(x: Any, /) -> Array:
    """Integer part, rounded towards 0, in the dtype of `x`.

    >>> tr.trunc(tr.asarray([1.7, -1.7]))
    Tensor([ 1., -1.])
    """
    return _TRUNC(x)


def abs2(x: Any, /) -> Array:
    """Squared magnitude, real and without a square root: ``real(x)**2 + imag(x)**2``.

    >>> tr.abs2(tr.asarray([3 + 4j]))
    Tensor([25.])
    """
    x = value(x)
    if not x.spec.cplx:
        return _MUL(x, x)
    re, im = catalog.real(x), catalog.imag(x)
    return _ADD(_MUL(re, re), _MUL(im, im))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """`x` limited to the interval from `min` to `max`; ``None`` leaves a side open.

    Where `min` exceeds `max`, the result is `max`. Integer bounds outside the range of an integer dtype do not bind.

    >>> tr.clip(tr.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)
    Tensor([0. , 0.5, 1. ])
    """
    x = value(x)
    min, max = _binding(min, x, below=True), _binding(max, x, below=False)
    if min is None:
        return aliased(x) if max is None else _MINIMUM(x, max)
    return _MAXIMUM(x, min) if max is None else catalog.clamp(x, min, max)


def _binding(bound: Any, x: Any, below: bool) -> Any:
    """A bound, or ``None`` if every value of the integer dtype of `x` meets it."""
    if bound.__class__ is not int or x.spec.dtype.kind not in "iu":
        return bound
    bits = 8 * x.spec.dtype.itemsize
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if x.spec.dtype.kind == "i" else (0, 2**bits - 1)
    if below:
        return None if bound <= least else bound
    return None if bound >= most else bound


def nan_to_num(x: Any, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """`x` with NaN and infinities replaced by numbers, by default the largest finite ones.

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
    """`x` itself.

    >>> tr.positive(tr.asarray([-1]))
    Tensor([-1])
    """
    return aliased(value(x))


def reciprocal(x: Any, /) -> Array:
    """``1 / x``; of integers, computed in float64.

    >>> tr.reciprocal(tr.asarray([2.0, 4.0]))
    Tensor([0.5 , 0.25])
    """
    return _DIV(1, x)


def square(x: Any, /) -> Array:
    """``x * x``.

    >>> tr.square(tr.asarray([2, -3]))
    Tensor([4, 9])
    """
    return _MUL(x, x)
