"""Analytic and special functions, element by element; integers are computed in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.operands import whole

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "polygamma",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


def __dir__() -> list[str]:
    return __all__.copy()


_ACOS: Final = catalog.acos.op()
_ACOSH: Final = catalog.acosh.op()
_ASIN: Final = catalog.asin.op()
_ASINH: Final = catalog.asinh.op()
_ATAN: Final = catalog.atan.op()
_ATAN2: Final = catalog.atan2.op()
_ATANH: Final = catalog.atanh.op()
_CBRT: Final = catalog.cbrt.op()
_COS: Final = catalog.cos.op()
_COSH: Final = catalog.cosh.op()
_DIGAMMA: Final = catalog.digamma.op()
_ERF: Final = catalog.erf.op()
_ERFC: Final = catalog.erfc.op()
_ERFINV: Final = catalog.erfinv.op()
_EXP: Final = catalog.exp.op()
_EXP2: Final = catalog.exp2.op()
_EXPM1: Final = catalog.expm1.op()
_HYPOT: Final = catalog.hypot.op()
_LGAMMA: Final = catalog.lgamma.op()
_LOG: Final = catalog.log.op()
_LOG10: Final = catalog.log10.op()
_LOG1P: Final = catalog.log1p.op()
_LOG2: Final = catalog.log2.op()
_LOGADDEXP: Final = catalog.logaddexp.op()
_RSQRT: Final = catalog.rsqrt.op()
_SIN: Final = catalog.sin.op()
_SINH: Final = catalog.sinh.op()
_SQRT: Final = catalog.sqrt.op()
_TAN: Final = catalog.tan.op()
_TANH: Final = catalog.tanh.op()


def acos(x: Any, /) -> Array:
    """Inverse cosine, in [0, pi]; NaN outside [-1, 1] for real operands.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.acos(tr.asarray([1.0, -1.0]))
    Tensor([0.        , 3.14159265])
    """
    return _ACOS(x)


def acosh(x: Any, /) -> Array:
    """Inverse hyperbolic cosine.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.acosh(tr.asarray([1.0]))
    Tensor([0.])
    """
    return _ACOSH(x)


def asin(x: Any, /) -> Array:
    """Inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1] for real operands.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.asin(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 1.57079633])
    """
    return _ASIN(x)


def asinh(x: Any, /) -> Array:
    """Inverse hyperbolic sine.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.asinh(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _ASINH(x)


def atan(x: Any, /) -> Array:
    """Inverse tangent, in [-pi/2, pi/2].

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.atan(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.78539816])
    """
    return _ATAN(x)


def atan2(x1: Any, x2: Any, /) -> Array:
    """Angle of the point with ordinate `x1` and abscissa `x2`, in (-pi, pi].

    Args:
        x1: ordinates, real.
        x2: abscissas, real; both broadcast.

    Returns:
        Array of the broadcast shape, in the promoted floating-point dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.atan2(tr.asarray([1.0]), tr.asarray([-1.0]))
    Tensor([2.35619449])
    """
    return _ATAN2(x1, x2)


def atanh(x: Any, /) -> Array:
    """Inverse hyperbolic tangent.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.atanh(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _ATANH(x)


def cbrt(x: Any, /) -> Array:
    """Real cube root.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.cbrt(tr.asarray([27.0, -8.0]))
    Tensor([ 3., -2.])
    """
    return _CBRT(x)


def cos(x: Any, /) -> Array:
    """Cosine.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.cos(tr.asarray([0.0]))
    Tensor([1.])
    """
    return _COS(x)


def cosh(x: Any, /) -> Array:
    """Hyperbolic cosine.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.cosh(tr.asarray([0.0]))
    Tensor([1.])
    """
    return _COSH(x)


def digamma(x: Any, /) -> Array:
    """Logarithmic derivative of the gamma function.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.digamma(tr.asarray([1.0]))
    Tensor([-0.57721566])
    """
    return _DIGAMMA(x)


def erf(x: Any, /) -> Array:
    """Error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to `x`.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    See also:
        `erfc`, the complement; `erfinv`, the inverse.

    >>> tr.erf(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.84270079])
    """
    return _ERF(x)


def erfc(x: Any, /) -> Array:
    """Complementary error function ``1 - erf(x)``, accurate in the tail.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.erfc(tr.asarray([0.0]))
    Tensor([1.])
    """
    return _ERFC(x)


def erfinv(x: Any, /) -> Array:
    """Inverse of the error function.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.erfinv(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _ERFINV(x)


def exp(x: Any, /) -> Array:
    """Exponential.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.exp(tr.asarray([0.0, 1.0]))
    Tensor([1.        , 2.71828183])
    """
    return _EXP(x)


def exp2(x: Any, /) -> Array:
    """Power of two.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.exp2(tr.asarray([3.0]))
    Tensor([8.])
    """
    return _EXP2(x)


def expm1(x: Any, /) -> Array:
    """``exp(x) - 1``, accurate near 0.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    See also:
        `log1p`, the inverse.

    >>> tr.expm1(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _EXPM1(x)


def hypot(x1: Any, x2: Any, /) -> Array:
    """Length of the vector (`x1`, `x2`), without intermediate overflow.

    Args:
        x1, x2: real arrays or numbers, which broadcast; integers are computed in float64.

    Returns:
        Array of the broadcast shape, in the promoted floating-point dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    >>> tr.hypot(tr.asarray([3.0]), tr.asarray([4.0]))
    Tensor([5.])
    """
    return _HYPOT(x1, x2)


def lgamma(x: Any, /) -> Array:
    """Logarithm of the absolute value of the gamma function.

    Args:
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        DTypeError: `x` is complex.

    >>> tr.lgamma(tr.asarray([1.0]))
    Tensor([0.])
    """
    return _LGAMMA(x)


def log(x: Any, /) -> Array:
    """Natural logarithm; branch cut along the negative real axis for complex operands.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.log(tr.asarray([1.0]))
    Tensor([0.])
    """
    return _LOG(x)


def log10(x: Any, /) -> Array:
    """Logarithm to base 10.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.log10(tr.asarray([100.0]))
    Tensor([2.])
    """
    return _LOG10(x)


def log1p(x: Any, /) -> Array:
    """``log(1 + x)``, accurate near 0.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    See also:
        `expm1`, the inverse.

    >>> tr.log1p(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _LOG1P(x)


def log2(x: Any, /) -> Array:
    """Logarithm to base 2.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.log2(tr.asarray([8.0]))
    Tensor([3.])
    """
    return _LOG2(x)


def logaddexp(x1: Any, x2: Any, /) -> Array:
    """``log(exp(x1) + exp(x2))``, without intermediate overflow.

    Args:
        x1, x2: real arrays or numbers, which broadcast; integers are computed in float64.

    Returns:
        Array of the broadcast shape, in the promoted floating-point dtype.

    Raises:
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    See also:
        `logsumexp`, which reduces axes.

    >>> tr.logaddexp(tr.asarray([0.0]), tr.asarray([0.0]))
    Tensor([0.69314718])
    """
    return _LOGADDEXP(x1, x2)


def rsqrt(x: Any, /) -> Array:
    """Reciprocal square root.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.rsqrt(tr.asarray([4.0]))
    Tensor([0.5])
    """
    return _RSQRT(x)


def sin(x: Any, /) -> Array:
    """Sine.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.sin(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _SIN(x)


def sinh(x: Any, /) -> Array:
    """Hyperbolic sine.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.sinh(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _SINH(x)


def sqrt(x: Any, /) -> Array:
    """Square root; branch cut along the negative real axis for complex operands.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    See also:
        `rsqrt`, its reciprocal; `cbrt`, the real cube root.

    >>> tr.sqrt(tr.asarray([4.0, 9.0]))
    Tensor([2., 3.])
    """
    return _SQRT(x)


def tan(x: Any, /) -> Array:
    """Tangent.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.tan(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _TAN(x)


def tanh(x: Any, /) -> Array:
    """Hyperbolic tangent.

    Args:
        x: real or complex array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    >>> tr.tanh(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.76159416])
    """
    return _TANH(x)


def polygamma(order: int, x: Any, /) -> Array:
    """Derivative of the given order of `digamma`; order 0 is `digamma` itself.

    Args:
        order: order of the derivative, at least 0.
        x: real array of any shape; integers are computed in float64.

    Returns:
        Array of the shape of `x`, in its floating-point dtype.

    Raises:
        ArgumentError: `order` is negative.
        DTypeError: `x` is complex.

    >>> tr.polygamma(1, tr.asarray([1.0]))
    Tensor([1.64493407])
    """
    return catalog.polygamma(x, order=whole("polygamma", "order", order))
