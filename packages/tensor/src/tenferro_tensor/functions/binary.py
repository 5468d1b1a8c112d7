"""The binary form of floating-point numbers: mantissas, exponents, and the distance to the next number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.functions._floating import floating
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.operands import converted
from tenferro_tensor_core import DTypeError, finfo, float32, int32, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["frexp", "ldexp", "modf", "spacing"]


def __dir__() -> list[str]:
    return __all__.copy()


def _real(name: str, x: Any) -> Any:
    x = floating(x)
    if x.spec.cplx:
        raise DTypeError(f"{name} takes real numbers, got {x.spec!r}; take real(x) and imag(x) apart")
    return x


def frexp(x: Any, /) -> tuple[Array, Array]:
    """Decompose numbers into mantissas in [0.5, 1) with their sign, and exponents of 2.

    ``x == mantissa * 2**exponent``. The mantissa is differentiated as `x` times a constant power of 2. For 0,
    infinities and NaN it is `x` itself.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        The tuple of the mantissas, in the floating-point dtype of `x`, and the exponents, int32.

    Raises:
        DTypeError: `x` is complex.

    See also:
        `ldexp`, the inverse.

    >>> tr.frexp(tr.asarray([8.0, 0.75]))
    (Tensor([0.5 , 0.75]), Tensor([4, 0], dtype=int32))
    """
    x = _real("frexp", x)
    if x.spec.narrow:
        mantissa, exponent = frexp(converted(x, float32))
        return converted(mantissa, x.spec.dtype), exponent
    size = catalog.abs(catalog.stop_gradient(x))
    plain = catalog.bitwise_or(catalog.eq(size, 0.0), catalog.bitwise_not(catalog.is_finite(size)))
    size = catalog.select(plain, 1.0, size)
    lift = _lift(x)
    tiny = catalog.lt(size, finfo(x.spec.dtype).smallest_normal)
    size = catalog.select(tiny, catalog.select(tiny, size, 0.0) * 2.0**lift, size)
    exponent = converted(catalog.floor(catalog.log2(size)), int64)
    exponent = exponent + converted(catalog.ge(scaled(size, -exponent), 1.0), int64)  # where log2 was rounded down
    exponent = exponent - converted(catalog.lt(scaled(size, -exponent), 0.5), int64)  # where it was rounded up
    exponent = exponent + converted(catalog.ge(scaled(size, -exponent), 1.0), int64)
    exponent = catalog.select(plain, 0, catalog.select(tiny, exponent - lift, exponent))
    return scaled(x, -exponent), converted(exponent, int32)


def ldexp(x1: Any, x2: Any, /) -> Array:
    """``x1 * 2**x2`` for integers `x2`, without intermediate overflow.

    Args:
        x1: real numbers.
        x2: integer exponents; both broadcast.

    Returns:
        Array of the broadcast shape, in the floating-point dtype of `x1`.

    Raises:
        DTypeError: `x1` is complex, or `x2` is not an integer array.
        ShapeError: the shapes do not broadcast.

    See also:
        `frexp`, the inverse.

    >>> tr.ldexp(tr.asarray([0.5, 0.75]), tr.asarray([4, 0]))
    Tensor([8.  , 0.75])
    """
    x1, x2 = _real("ldexp", x1), listed(x2)
    if x2.spec.dtype.kind not in "biu":
        raise DTypeError(f"ldexp takes integers as exponents, got {x2.spec!r}; use x1 * exp2(x2)")
    if x1.spec.narrow:
        return converted(scaled(converted(x1, float32), converted(x2, int64)), x1.spec.dtype)
    return scaled(x1, converted(x2, int64))


def _lift(x: Any) -> int:
    """The exponent of 2 that scales the smallest normal number to 1."""
    return round(-math.log2(finfo(x.spec.dtype).smallest_normal))


def scaled(x: Any, exponent: Any) -> Any:
    """A number times a power of 2, in three steps whose powers are normal numbers."""
    most = _lift(x)
    for _ in range(3):
        step = catalog.clamp(exponent, -most, most)
        x = catalog.mul(x, catalog.exp2(converted(step, x.spec.dtype)))
        exponent = exponent - step
    return x


def modf(x: Any, /) -> tuple[Array, Array]:
    """Fractional and integer parts, both with the sign of `x`.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        The tuple of the fractional and the integer parts, in the floating-point dtype of `x`.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.modf(tr.asarray([1.5, -0.25]))
    (Tensor([ 0.5 , -0.25]), Tensor([ 1., -0.]))
    """
    x = _real("modf", x)
    whole = catalog.trunc(x)
    part = catalog.sub(x, catalog.select(catalog.is_inf(x), 0.0, whole))
    part = catalog.select(catalog.is_inf(x), 0.0, part)
    return catalog.copysign(part, x), whole


def spacing(x: Any, /) -> Array:
    """Distance to the adjacent number of larger magnitude, with the sign of `x`; NaN for infinities.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.spacing(tr.asarray([1.0])) == 2.0**-52
    Tensor([ True])
    """
    x = catalog.stop_gradient(_real("spacing", x))
    infinite = catalog.is_inf(x)
    # The successor of the largest number is infinity, so use a smaller number with the same exponent.
    most = finfo(x.spec.dtype).max
    start = catalog.select(infinite, 0.0, catalog.clamp(x, -most / 1.5, most / 1.5))
    step = catalog.sub(catalog.nextafter(start, catalog.select(catalog.lt(x, 0.0), -math.inf, math.inf)), start)
    return catalog.select(infinite, math.nan, step)
