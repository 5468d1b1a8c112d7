"""Arithmetic and extrema, element by element."""

from tenferro_tensor._primitive import primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor_core import real_of

__all__ = [
    "absorbing_mul",
    "abs",
    "add",
    "ceil",
    "clamp",
    "copysign",
    "div",
    "floor",
    "floor_divide",
    "fmod",
    "maximum",
    "minimum",
    "mul",
    "neg",
    "nextafter",
    "pow",
    "remainder",
    "round",
    "sign",
    "sub",
    "trunc",
]


def __dir__() -> list[str]:
    return __all__.copy()


@primitive(elementwise=True)
def add(x: Spec, y: Spec) -> Spec:
    """Sum; logical or of booleans."""
    return x


@primitive(elementwise=True, domain="number")
def sub(x: Spec, y: Spec) -> Spec:
    """Difference; unsigned integers wrap around."""
    return x


@primitive(elementwise=True)
def mul(x: Spec, y: Spec) -> Spec:
    """Product; logical and of booleans."""
    return x


@primitive(elementwise=True)
def absorbing_mul(x: Spec, y: Spec) -> Spec:
    """Product that is 0 where `x` is exactly 0, even if `y` is infinite or NaN; elsewhere ``x * y``.

    Derivative rules multiply cotangents by possibly infinite elementwise derivatives with it.
    """
    return x


@primitive(elementwise=True, domain="inexact", work=6)
def div(x: Spec, y: Spec) -> Spec:
    """Quotient; integers are divided in float64."""
    return x


@primitive(elementwise=True, domain="real_number", work=20)
def floor_divide(x: Spec, y: Spec) -> Spec:
    """Quotient rounded towards minus infinity; integer division by zero is 0, as in NumPy."""
    return x


@primitive(elementwise=True, domain="real_number", work=20)
def remainder(x: Spec, y: Spec) -> Spec:
    """Remainder with the sign of the divisor, so that ``x == floor_divide(x, y) * y + remainder(x, y)``."""
    return x


@primitive(elementwise=True, domain="real_number", work=20)
def fmod(x: Spec, y: Spec) -> Spec:
    """Remainder with the sign of the dividend, as in C."""
    return x


@primitive(elementwise=True, domain="number", work=20)
def pow(x: Spec, y: Spec) -> Spec:
    """Power; integer powers of integers are integers, and a negative integer exponent is an error."""
    return x


@primitive(elementwise=True, domain="number")
def neg(x: Spec) -> Spec:
    """Negation; unsigned integers wrap around."""
    return x


@primitive(elementwise=True)
def abs(x: Spec) -> Spec:
    """Absolute value; real for complex numbers."""
    return x.with_(dtype=real_of(x.dtype)) if x.cplx else x


@primitive(elementwise=True, domain="number")
def sign(x: Spec) -> Spec:
    """Sign: -1, 0 or 1, and ``x / abs(x)`` for complex numbers (0 at 0)."""
    return x


@primitive(elementwise=True, domain="real")
def maximum(x: Spec, y: Spec) -> Spec:
    """Larger operand; NaN if either is NaN."""
    return x


@primitive(elementwise=True, domain="real")
def minimum(x: Spec, y: Spec) -> Spec:
    """Smaller operand; NaN if either is NaN."""
    return x


@primitive(elementwise=True, domain="floating")
def copysign(x: Spec, y: Spec) -> Spec:
    """Magnitude of `x` with the sign of `y`."""
    return x


@primitive(elementwise=True, domain="floating", widens=False)
def nextafter(x: Spec, y: Spec) -> Spec:
    """Next representable number after `x` in the direction of `y`."""
    return x


@primitive(elementwise=True, domain="real")
def floor(x: Spec) -> Spec:
    """Largest integer not greater than `x`; integers are unchanged."""
    return x


@primitive(elementwise=True, domain="real")
def ceil(x: Spec) -> Spec:
    """Smallest integer not less than `x`; integers are unchanged."""
    return x


@primitive(elementwise=True, domain="real")
def trunc(x: Spec) -> Spec:
    """Integer part, rounded towards zero; integers are unchanged."""
    return x


@primitive(elementwise=True)
def round(x: Spec) -> Spec:
    """Nearest integer, ties to even; complex numbers part by part."""
    return x


@primitive(elementwise=True, domain="real")
def clamp(x: Spec, lo: Spec, hi: Spec) -> Spec:
    """``minimum(maximum(x, lo), hi)``: `x` limited to an interval."""
    return x
