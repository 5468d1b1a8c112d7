"""Element-wise functions composed of those of the standard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.functions._floating import floating
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.operands import alike, converted
from tenferro_tensor_core import DTypeError, complex128, float64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "angle", "deg2rad", "divmod", "fabs", "float_power", "fmax", "fmin", "heaviside", "i0", "logaddexp2", "rad2deg",
    "rint", "sinc",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__.copy()


def angle(z: Any, /, deg: bool = False) -> Array:
    """Phase of complex numbers, in (-pi, pi]; 0 or pi for real numbers.

    Args:
        z: array of any shape.
        deg: return degrees instead of radians.

    Returns:
        Real array of the shape of `z`, in radians or degrees.

    >>> tr.angle(tr.asarray([1.0, 1j]), deg=True)
    Tensor([ 0., 90.])
    """
    z = floating(z)
    if z.spec.cplx:
        out = catalog.atan2(catalog.imag(z), catalog.real(z))
    else:
        out = catalog.stop_gradient(catalog.atan2(catalog.imag(z), z))
    return rad2deg(out) if deg else out


def deg2rad(x: Any, /) -> Array:
    """Convert degrees to radians.

    Args:
        x: angles in degrees, of any shape.

    Returns:
        Angles in radians, in the floating-point dtype of `x`.

    >>> tr.deg2rad(tr.asarray([180.0]))
    Tensor([3.14159265])
    """
    return catalog.mul(floating(x), math.pi / 180)


def rad2deg(x: Any, /) -> Array:
    """Convert radians to degrees.

    Args:
        x: angles in radians, of any shape.

    Returns:
        Angles in degrees, in the floating-point dtype of `x`.

    >>> tr.rad2deg(tr.asarray([math.pi]))
    Tensor([180.])
    """
    return catalog.mul(floating(x), 180 / math.pi)


def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Quotient rounded towards minus infinity, and remainder.

    Args:
        x1: dividends, real.
        x2: divisors, real; both broadcast.

    Returns:
        The tuple of ``floor_divide(x1, x2)`` and ``remainder(x1, x2)``.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.divmod(tr.asarray([7, -7]), 4)
    (Tensor([ 1, -2]), Tensor([3, 1]))
    """
    return catalog.floor_divide(x1, x2), catalog.remainder(x1, x2)


def fabs(x: Any, /) -> Array:
    """Absolute value of real numbers, as floating point.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.fabs(tr.asarray([-2, 3]))
    Tensor([2., 3.])
    """
    return catalog.abs(_real("fabs", x))


def rint(x: Any, /) -> Array:
    """Nearest integer, ties to even, as floating point.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.rint(tr.asarray([0.5, 1.5]))
    Tensor([0., 2.])
    """
    return catalog.round(floating(x))


def float_power(x1: Any, x2: Any, /) -> Array:
    """`x1` to the power `x2` in float64 or complex128; integers may have negative exponents.

    Args:
        x1: bases.
        x2: exponents; both broadcast.

    Returns:
        float64 or complex128 array of the broadcast shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> tr.float_power(tr.asarray([2, 4]), -1)
    Tensor([0.5 , 0.25])
    """
    operands = [listed(x1), listed(x2)]
    dtype = complex128 if any(x.spec.cplx for x in operands) else float64
    return catalog.pow(*[converted(x, dtype) for x in operands])


def fmax(x1: Any, x2: Any, /) -> Array:
    """Larger operand; where one is NaN, the other.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    See also:
        `maximum`, which propagates NaN.

    >>> tr.fmax(tr.asarray([1.0, float("nan")]), 0.5)
    Tensor([1. , 0.5])
    """
    return catalog.maximum(*_instead_of_nan(x1, x2))


def fmin(x1: Any, x2: Any, /) -> Array:
    """Smaller operand; where one is NaN, the other.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    See also:
        `minimum`, which propagates NaN.

    >>> tr.fmin(tr.asarray([1.0, float("nan")]), 0.5)
    Tensor([0.5, 0.5])
    """
    return catalog.minimum(*_instead_of_nan(x1, x2))


def _instead_of_nan(x1: Any, x2: Any) -> tuple[Any, Any]:
    """The operands, with NaNs of each replaced by the elements of the other."""
    x1, x2 = alike(x1, x2)
    if not x1.spec.inexact:
        return x1, x2
    return catalog.select(catalog.is_nan(x1), x2, x1), catalog.select(catalog.is_nan(x2), x1, x2)


def heaviside(x1: Any, x2: Any, /) -> Array:
    """Heaviside step function: 0 for negative `x1`, 1 for positive, `x2` at 0.

    Args:
        x1: real arguments.
        x2: value at 0; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted floating-point dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.heaviside(tr.asarray([-1.5, 0.0, 2.0]), 0.5)
    Tensor([0. , 0.5, 1. ])
    """
    x1, x2 = alike(*[_real("heaviside", x) if hasattr(x, "spec") else x for x in (x1, x2)])
    step = catalog.select(catalog.lt(x1, 0.0), 0.0, catalog.select(catalog.gt(x1, 0.0), 1.0, x2))
    return catalog.select(catalog.is_nan(x1), math.nan, step)


def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """``log2(2**x1 + 2**x2)``, without intermediate overflow.

    Args:
        x1, x2: real arrays or numbers, which broadcast.

    Returns:
        Array of the broadcast shape, in the promoted floating-point dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.logaddexp2(tr.asarray([1000.0]), 1000.0)
    Tensor([1001.])
    """
    x1, x2 = alike(*[_real("logaddexp2", x) if hasattr(x, "spec") else x for x in (x1, x2)])
    x1, x2 = floating(x1), floating(x2)
    top = catalog.maximum(x1, x2)
    infinite = catalog.is_inf(top)
    x1, x2 = (catalog.select(infinite, 0.0, x) for x in (x1, x2))
    # Either order gives the same smooth function, so that the larger operand is chosen, not computed: the derivatives
    # of a maximum and of the magnitude of the difference are those of a kink where the operands are equal.
    first = catalog.ge(x1, x2)
    larger, smaller = catalog.select(first, x1, x2), catalog.select(first, x2, x1)
    rest = catalog.div(catalog.log1p(catalog.exp2(catalog.sub(smaller, larger))), math.log(2.0))
    return catalog.select(infinite, top, catalog.add(larger, rest))


def _real(name: str, x: Any) -> Any:
    x = floating(x)
    if x.spec.cplx:
        raise DTypeError(f"{name} takes real numbers, got {x.spec!r}; take real(x) or abs(x) first")
    return x


_SINC_TERMS: Final = 12


def sinc(x: Any, /) -> Array:
    """Normalised sinc, ``sin(pi * x) / (pi * x)``, 1 at 0; derivatives of every order are exact there.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.sinc(tr.asarray([0.0, 0.5]))
    Tensor([1.        , 0.63661977])
    """
    y = catalog.mul(floating(x), math.pi)
    small = catalog.lt(catalog.abs(y), 1.0)
    safe = catalog.select(small, 1.0, y)
    square = catalog.select(small, catalog.mul(y, y), 0.0)
    series: Any = 0.0
    for k in range(_SINC_TERMS, 0, -1):
        series = (1.0 + series) * (square / -(2 * k * (2 * k + 1)))
    return catalog.select(small, 1.0 + series, catalog.div(catalog.sin(safe), safe))


_I0_TERMS: Final = 36
"""Terms of the power series, which yield 16 digits for arguments up to 8."""

_I0_TAIL: Final = (
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17, 3.46122286769746109310e-17,
    -2.82762398051658348494e-16, -3.42548561967721913462e-16, 1.77256013305652638360e-15, 3.81168066935262242075e-15,
    -9.55484669882830764870e-15, -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
    7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11, -3.14991652796324136454e-11,
    1.18891471078464383424e-11, 4.94060238822496958910e-10, 3.39623202570838634515e-9, 2.26666899049817806459e-8,
    2.04891858946906374183e-7, 2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
    8.04490411014108831608e-1,
)  # fmt: skip
"""Chebyshev coefficients, highest first, of ``exp(-x) * sqrt(x) * i0(x)`` in ``32 / x - 2`` (Cephes)."""


def i0(x: Any, /) -> Array:
    """Modified Bessel function of the first kind, order 0.

    The power series for ``abs(x) < 8``, and beyond the Chebyshev series of S. L. Moshier's Cephes library (1989).

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.i0(tr.asarray([0.0, 1.0]))
    Tensor([1.        , 1.26606588])
    """
    x = _real("i0", x)
    size = catalog.abs(x)
    small = catalog.lt(size, 8.0)
    quarter = catalog.select(small, catalog.mul(x, catalog.mul(x, 0.25)), 0.0)
    series: Any = 1.0
    for k in range(_I0_TERMS, 0, -1):
        series = 1.0 + quarter * (series / k**2)
    safe = catalog.select(small, 8.0, size)
    at = catalog.div(32.0, safe) - 2.0
    before: Any = 0.0
    this: Any = 0.0
    last: Any = 0.0
    for c in _I0_TAIL:
        last, before, this = before, this, at * this - before + c
    tail = catalog.exp(safe) * ((this - last) * 0.5) * catalog.rsqrt(safe)
    return catalog.select(small, series, tail)
