"""Rectifiers and other functions that are linear or constant on one side."""

from typing import Any, Final

from tenferro_runtime.nn._operands import real_floating
from tenferro_tensor import Array, catalog
from tenferro_tensor.operands import value
from tenferro_tensor_core import DTypeError

SELU_ALPHA: Final = 1.6732632423543772848170429916717
SELU_SCALE: Final = 1.0507009873554804934193349852946
"""Klambauer, Unterthiner, Mayr and Hochreiter, "Self-Normalizing Neural Networks", 2017."""


def relu(x: Any, /) -> Array:
    """The larger of `x` and 0; its derivative at 0 is 0.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.relu(tr.asarray([-1.0, 2.0]))
    Tensor([0., 2.])
    """
    x = value(x)
    if x.spec.cplx:
        raise DTypeError(f"relu takes real numbers, got {x.spec!r}; take real(x) first")
    return catalog.select(catalog.le(x, 0), 0, x)


def relu6(x: Any, /) -> Array:
    """`relu` limited to 6; its derivative at 0 and at 6 is 0.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.relu6(tr.asarray([-1.0, 2.0, 7.0]))
    Tensor([0., 2., 6.])
    """
    x = relu(x)
    return catalog.select(catalog.ge(x, 6), 6, x)


def leaky_relu(x: Any, /, negative_slope: Any = 0.01) -> Array:
    """`x` where it is at least 0, `negative_slope` times `x` below; its derivative at 0 is 1.

    Args:
        x: real array.
        negative_slope: slope below 0.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.leaky_relu(tr.asarray([-1.0, 2.0]))
    Tensor([-0.01,  2.  ])
    """
    x = real_floating("leaky_relu", x)
    return catalog.select(catalog.lt(x, 0), catalog.mul(x, negative_slope), x)


def _negative_part(x: Any) -> Any:
    """`x` below 0, and 0 above, with the derivative 1 at 0."""
    return catalog.select(catalog.gt(x, 0), 0, x)


def elu(x: Any, /, alpha: Any = 1.0) -> Array:
    """`x` above 0, ``alpha * (exp(x) - 1)`` below; its derivative at 0 is `alpha`.

    D. Clevert, T. Unterthiner, S. Hochreiter, "Fast and Accurate Deep Network Learning by Exponential Linear Units",
    2015.

    Args:
        x: real array.
        alpha: minus the limit at minus infinity.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.elu(tr.asarray([0.0, 2.0]))
    Tensor([0., 2.])
    """
    x = real_floating("elu", x)
    return catalog.select(catalog.gt(x, 0), x, catalog.mul(alpha, catalog.expm1(_negative_part(x))))


def celu(x: Any, /, alpha: Any = 1.0) -> Array:
    """`x` above 0, ``alpha * (exp(x / alpha) - 1)`` below: the derivative is continuous for every positive `alpha`.

    J. Barron, "Continuously Differentiable Exponential Linear Units", 2017.

    Args:
        x: real array.
        alpha: minus the limit at minus infinity, positive.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.celu(tr.asarray([0.0, 2.0]), 0.5)
    Tensor([0., 2.])
    """
    x = real_floating("celu", x)
    below = catalog.mul(alpha, catalog.expm1(catalog.div(_negative_part(x), alpha)))
    return catalog.select(catalog.gt(x, 0), x, below)


def selu(x: Any, /) -> Array:
    """`elu` with a scale and a slope that keep mean 0 and variance 1 from layer to layer.

    Klambauer, Unterthiner, Mayr and Hochreiter, "Self-Normalizing Neural Networks", 2017.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.selu(tr.asarray([0.0, 1.0]))
    Tensor([0.        , 1.05070099])
    """
    return catalog.mul(elu(x, SELU_ALPHA), SELU_SCALE)


def hard_tanh(x: Any, /) -> Array:
    """`x`, limited to the interval from -1 to 1; its derivative at both ends is 1.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.hard_tanh(tr.asarray([-3.0, 0.5, 2.0]))
    Tensor([-1. ,  0.5,  1. ])
    """
    x = real_floating("hard_tanh", x)
    return catalog.select(catalog.gt(x, 1), 1, catalog.select(catalog.lt(x, -1), -1, x))


def hard_sigmoid(x: Any, /) -> Array:
    """``relu6(x + 3) / 6``: 0 below -3, 1 above 3, linear between; its derivative at both kinks is 0.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.hard_sigmoid(tr.asarray([-4.0, 0.0, 4.0]))
    Tensor([0. , 0.5, 1. ])
    """
    x = real_floating("hard_sigmoid", x)
    return catalog.div(relu6(catalog.add(x, 3)), 6)


def hard_silu(x: Any, /) -> Array:
    """``x * hard_sigmoid(x)``, also known as hard swish.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.hard_silu(tr.asarray([-4.0, 3.0]))
    Tensor([-0.,  3.])
    """
    x = real_floating("hard_silu", x)
    least = catalog.select(catalog.lt(x, -4), -4, x)  # minus infinity times 0 is NaN
    return catalog.mul(least, hard_sigmoid(x))


hard_swish = hard_silu


def sparse_plus(x: Any, /) -> Array:
    """0 below -1, `x` above 1, and ``(x + 1)**2 / 4`` between: the integral of `sparse_sigmoid`.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.sparse_plus(tr.asarray([-2.0, 0.0, 2.0]))
    Tensor([0.  , 0.25, 2.  ])
    """
    x = real_floating("sparse_plus", x)
    near = catalog.add(hard_tanh(x), 1)
    return catalog.select(catalog.ge(x, 1), x, catalog.mul(catalog.mul(near, near), 0.25))


def sparse_sigmoid(x: Any, /) -> Array:
    """0 below -1, 1 above 1, and ``(x + 1) / 2`` between; its derivative at both kinks is 0.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.nn.sparse_sigmoid(tr.asarray([-2.0, 0.0, 2.0]))
    Tensor([0. , 0.5, 1. ])
    """
    x = real_floating("sparse_sigmoid", x)
    inner = catalog.mul(catalog.add(x, 1), 0.5)
    return catalog.select(catalog.ge(x, 1), 1, catalog.select(catalog.le(x, -1), 0, inner))
