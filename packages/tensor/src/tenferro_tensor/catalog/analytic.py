"""Analytic and special functions, element by element; integers are computed in float64."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import ArgumentError

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
    "log1p",
    "log2",
    "log10",
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


@primitive(elementwise=True, domain="inexact", work=6)
def sqrt(x: Spec) -> Spec:
    """Square root; branch cut along the negative real axis."""
    return x


@primitive(elementwise=True, domain="inexact", work=6)
def rsqrt(x: Spec) -> Spec:
    """Reciprocal square root."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def cbrt(x: Spec) -> Spec:
    """Real cube root."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def exp(x: Spec) -> Spec:
    """Exponential."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def exp2(x: Spec) -> Spec:
    """Power of two."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def expm1(x: Spec) -> Spec:
    """``exp(x) - 1``, accurate near 0."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def log(x: Spec) -> Spec:
    """Natural logarithm; branch cut along the negative real axis."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def log1p(x: Spec) -> Spec:
    """``log(1 + x)``, accurate near 0."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def log2(x: Spec) -> Spec:
    """Logarithm to base 2."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def log10(x: Spec) -> Spec:
    """Logarithm to base 10."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def sin(x: Spec) -> Spec:
    """Sine."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def cos(x: Spec) -> Spec:
    """Cosine."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def tan(x: Spec) -> Spec:
    """Tangent."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def asin(x: Spec) -> Spec:
    """Inverse sine."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def acos(x: Spec) -> Spec:
    """Inverse cosine."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def atan(x: Spec) -> Spec:
    """Inverse tangent."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def sinh(x: Spec) -> Spec:
    """Hyperbolic sine."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def cosh(x: Spec) -> Spec:
    """Hyperbolic cosine."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def tanh(x: Spec) -> Spec:
    """Hyperbolic tangent."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def asinh(x: Spec) -> Spec:
    """Inverse hyperbolic sine."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def acosh(x: Spec) -> Spec:
    """Inverse hyperbolic cosine."""
    return x


@primitive(elementwise=True, domain="inexact", work=20)
def atanh(x: Spec) -> Spec:
    """Inverse hyperbolic tangent."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def atan2(x: Spec, y: Spec) -> Spec:
    """Angle of the point with ordinate `x` and abscissa `y`, in (-pi, pi]."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def hypot(x: Spec, y: Spec) -> Spec:
    """Length of the vector (x, y), without intermediate overflow."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def logaddexp(x: Spec, y: Spec) -> Spec:
    """``log(exp(x) + exp(y))``, without intermediate overflow."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def erf(x: Spec) -> Spec:
    """Error function."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def erfc(x: Spec) -> Spec:
    """Complementary error function ``1 - erf(x)``."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def erfinv(x: Spec) -> Spec:
    """Inverse error function."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def lgamma(x: Spec) -> Spec:
    """Logarithm of the absolute value of the gamma function."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def digamma(x: Spec) -> Spec:
    """Logarithmic derivative of the gamma function."""
    return x


@primitive(elementwise=True, domain="floating", work=20)
def polygamma(x: Spec, *, order: int) -> Spec:
    """Derivative of `digamma` of a given order; order 0 is `digamma` itself.

    Args:
        x: argument.
        order: order of the derivative, at least 0.

    Returns:
        Spec of `x`.
    """
    if order < 0:
        raise ArgumentError(f"polygamma needs an order of at least 0, got {order}", order=order)
    return x
