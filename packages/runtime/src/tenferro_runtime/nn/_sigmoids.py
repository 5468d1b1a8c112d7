"""Sigmoids and functions derived from them.

Exponentials have nonpositive arguments, so that none overflows, and sigmoids are relatively accurate in both tails.
Where a sigmoid multiplies `x`, `x` is clamped to the range where the sigmoid is not 0, because minus infinity times 0
is NaN; beyond the range where it is not 1, the product is `x` itself, because the sigmoid's derivative is 0 there.
"""

from math import log, pi, sqrt
from typing import Any, Final

from tenferro_runtime.nn._operands import floating, real_floating
from tenferro_tensor import Array, catalog

LEAST_EXPONENT: Final = -800.0
"""``exp`` underflows to 0 at this value in double precision."""
LEAST_GAUSSIAN: Final = -40.0
"""The normal distribution function underflows to 0 at this value in double precision."""


def _at_least(x: Any, bound: float) -> Any:
    return catalog.select(catalog.lt(x, bound), bound, x)


def _times(x: Any, sigmoid: Any, bound: float) -> Any:
    """``x * sigmoid(x)``, where the sigmoid is 0 below `bound` and 1 above ``-bound``, infinities included."""
    above = catalog.gt(x, -bound)
    near = catalog.select(above, 0, _at_least(x, bound))
    return catalog.select(above, x, catalog.mul(near, sigmoid(near)))


def sigmoid(x: Any, /) -> Array:
    """Logistic function, ``1 / (1 + exp(-x))``.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.sigmoid(tr.asarray([0.0, 1000.0]))
    Tensor([0.5, 1. ])
    """
    x = floating(x)
    positive = catalog.ge(catalog.real(x) if x.spec.cplx else x, 0)
    e = catalog.exp(catalog.select(positive, catalog.neg(x), x))
    return catalog.div(catalog.select(positive, 1, e), catalog.add(1, e))


def log_sigmoid(x: Any, /) -> Array:
    """Logarithm of `sigmoid`, ``-log(1 + exp(-x))``.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.log_sigmoid(tr.asarray([0.0, -1000.0]))
    Tensor([-6.93147181e-01, -1.00000000e+03])
    """
    x = real_floating("log_sigmoid", x)
    return catalog.neg(catalog.logaddexp(catalog.neg(x), 0))


def log1mexp(x: Any, /) -> Array:
    """``log(1 - exp(-x))`` for positive `x`, accurate near 0 and far from it; minus infinity at 0, NaN below.

    Mächler, "Accurately computing log(1 - exp(-|a|))", 2012.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.log1mexp(tr.asarray([1e-20, 1.0]))
    Tensor([-46.05170186,  -0.45867515])
    """
    x = real_floating("log1mexp", x)
    near = catalog.lt(x, log(2))
    # Each branch is evaluated where it is finite, so that the derivative of the other one is not NaN.
    below = catalog.log(catalog.neg(catalog.expm1(catalog.neg(catalog.select(near, x, log(2))))))
    above = catalog.log1p(catalog.neg(catalog.exp(catalog.neg(catalog.select(near, log(2), x)))))
    return catalog.select(near, below, above)


def softplus(x: Any, /) -> Array:
    """Smooth `relu`, ``log(1 + exp(x))``; its derivative is `sigmoid`.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.softplus(tr.asarray([0.0, 1000.0]))
    Tensor([6.93147181e-01, 1.00000000e+03])
    """
    return catalog.logaddexp(real_floating("softplus", x), 0)


def silu(x: Any, /) -> Array:
    """``x * sigmoid(x)``, also known as swish.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.silu(tr.asarray([0.0, 1000.0]))
    Tensor([   0., 1000.])
    """
    x = real_floating("silu", x)
    return _times(x, sigmoid, LEAST_EXPONENT)


swish = silu


def gelu(x: Any, /, approximate: bool = True) -> Array:
    """Gaussian error linear unit: `x` times the normal distribution function of `x`.

    Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.

    Args:
        x: real array.
        approximate: use ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`` instead of the error function.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.gelu(tr.asarray([0.0, 1.0]), approximate=False)
    Tensor([0.        , 0.84134475])
    """
    x = real_floating("gelu", x)
    return _times(x, _normal_by_tanh if approximate else _normal, LEAST_GAUSSIAN)


def _normal(x: Any) -> Any:
    """The normal distribution function."""
    return catalog.mul(0.5, catalog.erfc(catalog.mul(x, -sqrt(0.5))))


def _normal_by_tanh(x: Any) -> Any:
    cube = catalog.mul(x, catalog.mul(x, x))
    # (1 + tanh(y)) / 2 is sigmoid(2 y), without its loss of digits in the lower tail.
    return sigmoid(catalog.mul(2 * sqrt(2 / pi), catalog.add(x, catalog.mul(0.044715, cube))))


def mish(x: Any, /) -> Array:
    """``x * tanh(softplus(x))``.

    Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.mish(tr.asarray([0.0, 1000.0]))
    Tensor([   0., 1000.])
    """
    x = real_floating("mish", x)
    return _times(x, _tanh_of_softplus, LEAST_EXPONENT)


def _tanh_of_softplus(x: Any) -> Any:
    # With e = exp(x), tanh(log(1 + e)) is e (e + 2) / (e (e + 2) + 2), and 1 in double precision for x >= 20.
    e = catalog.exp(catalog.select(catalog.gt(x, 20), 20, x))
    n = catalog.mul(e, catalog.add(e, 2))
    return catalog.div(n, catalog.add(n, 2))


def soft_sign(x: Any, /) -> Array:
    """``x / (1 + abs(x))``; its derivative at 0 is 1.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.soft_sign(tr.asarray([-1.0, 0.0, 3.0]))
    Tensor([-0.5 ,  0.  ,  0.75])
    """
    x = real_floating("soft_sign", x)
    infinite = catalog.is_inf(x)
    finite = catalog.select(infinite, 0, x)
    return catalog.select(infinite, catalog.sign(x), catalog.div(finite, catalog.add(1, catalog.abs(finite))))


def squareplus(x: Any, /, b: Any = 4) -> Array:
    """``(x + sqrt(x**2 + b)) / 2`` for a positive `b`: a smooth `relu` without exponentials.

    J. Barron, "Squareplus: A Softplus-Like Algebraic Rectifier", 2021.

    Args:
        x: real array.
        b: curvature at 0, positive.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.squareplus(tr.asarray([0.0, -1e9]))
    Tensor([1.e+00, 1.e-09])
    """
    x = real_floating("squareplus", x)
    root = catalog.hypot(x, catalog.sqrt(b) if hasattr(b, "spec") else sqrt(b))
    positive = catalog.ge(x, 0)
    # Below 0 the sum cancels; there it is b / (sqrt(x**2 + b) - x).
    distance = catalog.add(root, catalog.select(positive, x, catalog.neg(x)))
    return catalog.mul(0.5, catalog.select(positive, distance, catalog.div(b, distance)))
