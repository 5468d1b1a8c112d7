"""Analytic and special functions, element by element; integers are computed in float64."""

from typing import Any, Final

from tenferro_tensor import catalog
from tenferro_tensor.operands import whole

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


def acos(x: Any, /) -> Any:
    """Inverse cosine, in [0, pi]; NaN outside [-1, 1] for real operands.

    >>> tr.acos(tr.asarray([1.0, -1.0]))
    Tensor([0.        , 3.14159265])
    """
    return _ACOS(x)


def acosh(x: Any, /) -> Any:
    """Inverse hyperbolic cosine.

    >>> tr.acosh(tr.asarray([1.0]))
    Tensor([0.])
    """
    return _ACOSH(x)


def asin(x: Any, /) -> Any:
    """Inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1] for real operands.

    >>> tr.asin(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 1.57079633])
    """
    return _ASIN(x)


def asinh(x: Any, /) -> Any:
    """Inverse hyperbolic sine.

    >>> tr.asinh(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _ASINH(x)


def atan(x: Any, /) -> Any:
    """Inverse tangent, in [-pi/2, pi/2].

    >>> tr.atan(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.78539816])
    """
    return _ATAN(x)


def atan2(x1: Any, x2: Any, /) -> Any:
    """Angle of the point with ordinate `x1` and abscissa `x2`, in (-pi, pi].

    >>> tr.atan2(tr.asarray([1.0]), tr.asarray([-1.0]))
    Tensor([2.35619449])
    """
    return _ATAN2(x1, x2)


def atanh(x: Any, /) -> Any:
    """Inverse hyperbolic tangent.

    >>> tr.atanh(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _ATANH(x)


def cbrt(x: Any, /) -> Any:
    """Real cube root.

    >>> tr.cbrt(tr.asarray([27.0, -8.0]))
    Tensor([ 3., -2.])
    """
    return _CBRT(x)


def cos(x: Any, /) -> Any:
    """Cosine.

    >>> tr.cos(tr.asarray([0.0]))
    Tensor([1.])
    """
    return _COS(x)


def cosh(x: Any, /) -> Any:
    """Hyperbolic cosine.

    >>> tr.cosh(tr.asarray([0.0]))
    Tensor([1.])
    """
    return _COSH(x)


def digamma(x: Any, /) -> Any:
    """Logarithmic derivative of the gamma function.

    >>> tr.digamma(tr.asarray([1.0]))
    Tensor([-0.57721566])
    """
    return _DIGAMMA(x)


def erf(x: Any, /) -> Any:
    """Error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to `x`.

    >>> tr.erf(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.84270079])
    """
    return _ERF(x)


def erfc(x: Any, /) -> Any:
    """Complementary error function ``1 - erf(x)``, accurate in the tail.

    >>> tr.erfc(tr.asarray([0.0]))
    Tensor([1.])
    """
    return _ERFC(x)


def erfinv(x: Any, /) -> Any:
    """Inverse of the error function.

    >>> tr.erfinv(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _ERFINV(x)


def exp(x: Any, /) -> Any:
    """Exponential.

    >>> tr.exp(tr.asarray([0.0, 1.0]))
    Tensor([1.        , 2.71828183])
    """
    return _EXP(x)


def exp2(x: Any, /) -> Any:
    """Power of two.

    >>> tr.exp2(tr.asarray([3.0]))
    Tensor([8.])
    """
    return _EXP2(x)


def expm1(x: Any, /) -> Any:
    """``exp(x) - 1``, accurate near 0.

    >>> tr.expm1(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _EXPM1(x)


def hypot(x1: Any, x2: Any, /) -> Any:
    """Length of the vector (`x1`, `x2`), without overflow on the way.

    >>> tr.hypot(tr.asarray([3.0]), tr.asarray([4.0]))
    Tensor([5.])
    """
    return _HYPOT(x1, x2)


def lgamma(x: Any, /) -> Any:
    """Logarithm of the absolute value of the gamma function.

    >>> tr.lgamma(tr.asarray([1.0]))
    Tensor([0.])
    """
    return _LGAMMA(x)


def log(x: Any, /) -> Any:
    """Natural logarithm; branch cut along the negative real axis for complex operands.

    >>> tr.log(tr.asarray([1.0]))
    Tensor([0.])
    """
    return _LOG(x)


def log10(x: Any, /) -> Any:
    """Logarithm to base 10.

    >>> tr.log10(tr.asarray([100.0]))
    Tensor([2.])
    """
    return _LOG10(x)


def log1p(x: Any, /) -> Any:
    """``log(1 + x)``, accurate near 0.

    >>> tr.log1p(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _LOG1P(x)


def log2(x: Any, /) -> Any:
    """Logarithm to base 2.

    >>> tr.log2(tr.asarray([8.0]))
    Tensor([3.])
    """
    return _LOG2(x)


def logaddexp(x1: Any, x2: Any, /) -> Any:
    """``log(exp(x1) + exp(x2))``, without overflow on the way.

    >>> tr.logaddexp(tr.asarray([0.0]), tr.asarray([0.0]))
    Tensor([0.69314718])
    """
    return _LOGADDEXP(x1, x2)


def rsqrt(x: Any, /) -> Any:
    """Reciprocal square root.

    >>> tr.rsqrt(tr.asarray([4.0]))
    Tensor([0.5])
    """
    return _RSQRT(x)


def sin(x: Any, /) -> Any:
    """Sine.

    >>> tr.sin(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _SIN(x)


def sinh(x: Any, /) -> Any:
    """Hyperbolic sine.

    >>> tr.sinh(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _SINH(x)


def sqrt(x: Any, /) -> Any:
    """Square root; branch cut along the negative real axis for complex operands.

    >>> tr.sqrt(tr.asarray([4.0, 9.0]))
    Tensor([2., 3.])
    """
    return _SQRT(x)


def tan(x: Any, /) -> Any:
    """Tangent.

    >>> tr.tan(tr.asarray([0.0]))
    Tensor([0.])
    """
    return _TAN(x)


def tanh(x: Any, /) -> Any:
    """Hyperbolic tangent.

    >>> tr.tanh(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 0.76159416])
    """
    return _TANH(x)


def polygamma(order: int, x: Any, /) -> Any:
    """Derivative of the given order of `digamma`; order 0 is `digamma` itself.

    >>> tr.polygamma(1, tr.asarray([1.0]))
    Tensor([1.64493407])
    """
    return catalog.polygamma(x, order=whole("polygamma", "order", order))
