"""The logistic function, its logarithm and its inverse."""

from __future__ import annotations

import math
from typing import Any

from tenferro_runtime.nn import log_sigmoid, sigmoid, softplus
from tenferro_runtime.special._declared import composed
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import log_softmax, logaddexp, logsumexp, softmax

__all__ = ["expit", "log_expit", "log_softmax", "logaddexp", "logit", "logsumexp", "softmax", "softplus"]


def expit(x: Any, /) -> Array:
    """Logistic function, ``1 / (1 + exp(-x))``.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.expit(tr.asarray([0.0, 1000.0]))
    Tensor([0.5, 1. ])
    """
    return sigmoid(x)


def log_expit(x: Any, /) -> Array:
    """Logarithm of `expit`, ``-log(1 + exp(-x))``.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.log_expit(tr.asarray([0.0, -1000.0]))
    Tensor([-6.93147181e-01, -1.00000000e+03])
    """
    return log_sigmoid(x)


def logit(x: Any, /) -> Array:
    """Inverse of `expit`, ``log(x / (1 - x))``; infinite at 0 and 1.

    Args:
        x: real array from 0 to 1.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.logit(tr.asarray([0.0, 0.5, 0.75]))
    Tensor([      -inf, 0.        , 1.09861229])
    """
    return logit_(x)  # type: ignore[no-any-return]


def _logit(x: Any) -> Any:
    low, start, end = catalog.lt(x, 0.25), catalog.eq(x, 0), catalog.eq(x, 1)
    inner = catalog.select(catalog.bitwise_or(start, end), 0.5, x)
    below, above = catalog.select(low, inner, 0.25), catalog.select(low, 0.25, inner)
    # From 1/4 on the operand of the inverse tangent is exact.
    far, near = catalog.log(below) - catalog.log1p(-below), 2.0 * catalog.atanh(2.0 * above - 1.0)
    found = catalog.select(low, far, near)
    return catalog.select(start, -math.inf, catalog.select(end, math.inf, found))


logit_ = composed("logit", "x", "``log(x / (1 - x))``.", _logit, x=lambda x: 1.0 / (x * (1.0 - x)))
