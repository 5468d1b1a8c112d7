"""The normal distribution."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tenferro_runtime.special._declared import DECLARED, from_host, from_scipy, in_jax
from tenferro_runtime.special._error_functions import erfc, erfcinv_, erfcx
from tenferro_runtime.special._operands import is_complex, real_floating
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array, catalog

__all__ = ["log_ndtr", "ndtr", "ndtri", "ndtri_exp"]

_HALF: Final = math.sqrt(0.5)
_MILLS: Final = math.sqrt(2 / math.pi)


def ndtr(x: Any, /) -> Array:
    """Distribution function of the standard normal distribution, ``erfc(-x / sqrt(2)) / 2``.

    Args:
        x: real or complex array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.ndtr(tr.asarray([0.0, 1.0]))
    Tensor([0.5       , 0.84134475])
    """
    if not is_complex(x):
        x = real_floating("ndtr", x)
    return 0.5 * erfc(x * -_HALF)


def log_ndtr(x: Any, /) -> Array:
    """Logarithm of `ndtr`; its derivatives stay accurate in the lower tail.

    Args:
        x: real array.

    Returns:
        Values of the shape of `x`, in its floating-point dtype (float64 for integers).

    >>> tr.special.log_ndtr(tr.asarray([0.0, -100.0]))
    Tensor([-6.93147181e-01, -5.00552421e+03])
    """
    return log_ndtr_(x)  # type: ignore[no-any-return]


def ndtri(y: Any, /) -> Array:
    """Quantile of the standard normal distribution: the x for which ``ndtr(x)`` is `y`.

    Args:
        y: probability, a real array.

    Returns:
        Values of the shape of `y`, in its floating-point dtype (float64 for integers).

    >>> tr.special.ndtri(tr.asarray([0.5, 0.975]))
    Tensor([0.        , 1.95996398])
    """
    return ndtri_(y)  # type: ignore[no-any-return]


def ndtri_exp(y: Any, /) -> Array:
    """Inverse of `log_ndtr`: the x for which ``log_ndtr(x)`` is `y`.

    Args:
        y: logarithm of a probability, a real array.

    Returns:
        Values of the shape of `y`, in its floating-point dtype (float64 for integers).

    >>> tr.special.ndtri_exp(tr.asarray([-1.0, -1000.0]))
    Tensor([ -0.33747496, -44.61574773])
    """
    return ndtri_exp_(y)  # type: ignore[no-any-return]


FAR: Final = -9.0
"""Up to where the asymptotic series of the derivatives is exact."""


@lru_cache(maxsize=1)
def _hazard_coefficients() -> tuple[float, ...]:
    """Those of ``y ** -(2 n + 1)`` in ``h(-y) - y``, by the equation of Riccati that h obeys."""
    found = [1.0]
    for n in range(26):
        found.append(-(2 * n + 1) * found[n] - sum(found[i] * found[n - i] for i in range(n + 1)))
    return tuple(found)


def _log_ndtr(x: Any, order: int) -> Any:
    """With h the density over the distribution function, ``h' = -h (x + h)``."""
    special = host_special()
    derivatives = [_MILLS / special.erfcx(x * -_HALF)]
    if order == 1:
        return derivatives[0]
    far = x < FAR
    near = np.where(far, 0.0, x)
    derivatives = [_MILLS / special.erfcx(near * -_HALF)]
    sums = [near + derivatives[0]]
    for n in range(order - 1):
        derivatives.append(-sum(math.comb(n, j) * derivatives[n - j] * sums[j] for j in range(n + 1)))
        sums.append(derivatives[-1] + (1.0 if n == 0 else 0.0))
    if not far.any():
        return derivatives[-1]
    y = np.where(far, -x, 10.0)
    k = order - 1
    series = np.zeros_like(y)
    for n, c in reversed(list(enumerate(_hazard_coefficients()))):
        # Each derivative by x is minus one by y, of a negative power.
        series = series + c * float(math.prod(range(2 * n + 1, 2 * n + 1 + k))) * y ** -(2.0 * n + 1 + k)
    return np.where(far, series - (1.0 if k == 1 else 0.0), derivatives[-1])


_lower_function = in_jax("log_ndtr", "log_ndtr", most=1)


def _lower_log_ndtr(e: Any, xs: Any, outs: Any, *, order: int) -> Any:
    if order != 1:
        return _lower_function(e, xs, outs, order=order)
    (x,), (out,) = xs, outs
    ratio = e.jax_function("erfcx", (e.op("multiply", (x, e.constant(-_HALF, out)), out),), out)
    return e.op("divide", (e.constant(_MILLS, out), ratio), out)


log_ndtr_ = from_host(
    "log_ndtr",
    "x",
    "A derivative of the logarithm of the normal distribution function.",
    _log_ndtr,
    {"x": "order"},
    value="log_ndtr",
    lowering=_lower_log_ndtr,
)
ndtri_ = from_scipy(
    "ndtri",
    "x",
    "Quantile of the normal distribution.",
    jax="ndtri",
    x=lambda out: math.sqrt(2 * math.pi) * catalog.exp(0.5 * (out * out)),
)
ndtri_exp_ = from_scipy(
    "ndtri_exp",
    "x",
    "Quantile of the normal distribution, of the logarithm of a probability.",
    x=lambda out: erfcx(out * -_HALF) * (1 / _MILLS),
)
DECLARED.append(lambda registry: registry.expansion(erfcinv_, lambda y: -_HALF * ndtri(0.5 * y), keep=True))
